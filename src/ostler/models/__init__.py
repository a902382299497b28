"""Adapters to model APIs, used by the engine alone."""
