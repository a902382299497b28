"""Hides typing_extensions, which only development tools install; msgspec would import it."""

raise ImportError("not part of an installation of Ostler")
