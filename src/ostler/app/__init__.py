"""Composition root: builds sessions and commands from the other packages; only `cli` imports it."""
