"""MCP servers as tools of a team: pinned definitions, and a bounded child process for each."""
