"""The supervisor as an MCP server: runs as tools and resources. Importing it takes half a second."""
