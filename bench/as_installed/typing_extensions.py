"""Hides the real package: only development tools install it, and msgspec would import it."""

raise ImportError("not installed with Ostler")
