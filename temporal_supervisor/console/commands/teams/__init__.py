"""Parts of the command `teams`: new teams, goals, and the offers of MCP servers."""
