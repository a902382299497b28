"""Encoding and decoding: events as JSON, JSON-RPC, and the Agent Client Protocol."""
