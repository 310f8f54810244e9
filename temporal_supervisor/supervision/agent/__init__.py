"""A worker agent's rules: its next step, its conclusion, the contents of its prompt."""
