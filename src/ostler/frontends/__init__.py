"""Frontends; no frontend imports another."""
