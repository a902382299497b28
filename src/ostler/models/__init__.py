"""Clients for model APIs, used by the engine."""
