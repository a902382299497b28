"""The built-in backend: runs a model in an agent loop."""
