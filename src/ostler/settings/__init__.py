"""Typed configuration: JSONC files, layers and their origins, trust, and the choice of a model."""
