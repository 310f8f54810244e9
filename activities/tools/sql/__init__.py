"""SQL over a team's tables, in a process of its own."""
