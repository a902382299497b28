"""`ostler redo`: do again what was undone last."""

from ostler.cli.undo import redo as main

__all__ = ["main"]
