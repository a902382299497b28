"""Backend for Agent Zero, a server with an agent and a history of its own that requests local tools."""
