"""Recognises in the output of a command that the sandbox denied a write."""

import re

from ostler.text.lazy_regex import lazy_regex

# What programs print for EROFS (bubblewrap) and EACCES (Landlock). A cache that cannot be written fails no command.
_READ_ONLY = lazy_regex(
    r"read-only file ?system|\bEROFS\b|\berrno[: ]+30\b|\bos error 30\b|readonly database|read-only database",
    re.IGNORECASE,
)
_NO_ACCESS = lazy_regex(
    r"permission denied|\bEACCES\b|\berrno[: ]+13\b|\bos error 13\b|readonly database", re.IGNORECASE
)


def mentions_denied_write(output: str, sandbox: str) -> bool:
    """Return whether a line of the output says that a write failed; `sandbox` is the name of the sandbox."""
    pattern = _NO_ACCESS if sandbox == "landlock" else _READ_ONLY
    return any(pattern.search(line) for line in output.splitlines() if "cache" not in line.lower())
