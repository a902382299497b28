"""The abilities of the terminal of this process, and what to do when it is gone."""

import os
import sys

LIMITED_TERMINALS = ("", "dumb", "unknown")


def can_edit_lines() -> bool:
    """Return whether input and output are a terminal that supports line editing."""
    if not (is_terminal(0) and is_terminal(1)) or os.environ.get("TERM", "") in LIMITED_TERMINALS:
        return False
    try:
        import termios  # noqa: F401  # the line editor needs it
    except ImportError:
        return False
    return True


def is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def silence_closed_output() -> None:
    """If the terminal is gone, redirect output to the null device, so that the exit does not fail."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(null, descriptor)
