"""The supervisor as an MCP server: runs as tools and resources. It takes 0.5 s to import."""
