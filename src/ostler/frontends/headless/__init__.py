"""Headless frontend: runs one prompt non-interactively."""
