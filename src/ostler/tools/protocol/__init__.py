"""Tools for ACP agents (files and terminals); never offered to a model."""
