"""Prints notices to standard error and ignores write errors."""

import sys
from contextlib import suppress

from ostler.text.sanitise import sanitise


def notify(line: str, program: str = "ostler") -> None:
    """Print a notice after the name of the program. The run continues even if standard error is closed or full."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{program}: {sanitise(line)}\n")
        sys.stderr.flush()
