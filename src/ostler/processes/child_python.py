"""Builds the command line that starts a part of Ostler as a Python child process."""

import os
import sys

# The folder of the package, or the single file that contains it; Python accepts both in `sys.path`.
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def python_command(entry_point: str, *args: str, with_packages: bool = False) -> list[str]:
    """Return the command that calls `module:function` with `args`. `with_packages` allows installed packages."""
    module, function = entry_point.split(":")
    program = f"import sys; sys.path.append({SOURCE!r}); from {module} import {function}; {function}(*sys.argv[1:])"
    return [sys.executable, "-I", *([] if with_packages else ["-S"]), "-c", program, *args]


def program_paths() -> tuple[str, ...]:
    """Return the real paths that these processes read: Python and the source."""
    paths = (sys.prefix, sys.base_prefix, os.path.dirname(sys.executable), SOURCE)
    return tuple(os.path.realpath(path) for path in paths)
