"""Stands in the way of the one that only our tools bring along: msgspec would read it, and no installation has it."""

raise ImportError("not part of an installation of Ostler")
