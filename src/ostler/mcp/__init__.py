"""MCP servers as a source of tools: local programs and remote servers, in both eras of the protocol."""
