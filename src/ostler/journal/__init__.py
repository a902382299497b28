"""Append-only session records on disk, and the files derived from them."""
