"""Edits that a small model writes in the text of its answer, and the files that its first request shows."""
