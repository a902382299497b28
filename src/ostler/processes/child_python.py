"""The one way to start a part of Ostler as a child process: it sees nothing but what this one was loaded from."""

import os
import sys

# The folder that holds the package, or the one file that Ostler was delivered as: Python takes both as a path.
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def python_command(entry_point: str, *args: str, with_packages: bool = False) -> list[str]:
    """The command that calls `module:function` with these words; `packages`: what is installed can be imported too."""
    module, function = entry_point.split(":")
    program = f"import sys; sys.path.append({SOURCE!r}); from {module} import {function}; {function}(*sys.argv[1:])"
    return [sys.executable, "-I", *([] if with_packages else ["-S"]), "-c", program, *args]
