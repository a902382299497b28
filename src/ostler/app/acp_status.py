"""A line about an ACP run for the person at the terminal, apart from what the agent says."""

import sys

from ostler.text.sanitise import sanitise


def print_status(line: str) -> None:
    """On standard error, where it disturbs no output."""
    sys.stderr.write(f"ostler: {sanitise(line)}\n")
