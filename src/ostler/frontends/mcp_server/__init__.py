"""Ostler as an MCP server: its tools for other programs."""
