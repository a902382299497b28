"""A JSON-RPC peer that is a child process: ACP agents and MCP servers."""
