"""What is said beside the output: a line each on standard error, whether or not anybody hears it."""

import sys
from contextlib import suppress

from ostler.text.sanitise import sanitise


def notify(line: str) -> None:
    """The run goes on also where standard error is closed or full: the answer is what counts."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"ostler: {sanitise(line)}\n")
        sys.stderr.flush()
