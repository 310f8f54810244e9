"""Parts of the command `teams`: new teams, and the offers of MCP servers."""
