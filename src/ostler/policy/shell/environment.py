"""Variables that are programs in disguise: a pager, an editor, a library to load first."""

import re
from typing import Protocol

from ostler.policy import danger
from ostler.policy.shell.args import HOLE
from ostler.policy.shell.call import NO_FEED, Feed
from ostler.policy.shell.scope import Scope

_TEMPORARY = re.compile(r"/(?:var/)?tmp(?:/|$)|/dev/shm")
_UNSET = frozenset({"", "/dev/null", "0", "false", "no", "none", "off"})


class Finder(Protocol):
    """Who is told of findings."""

    def confirm(self, why: str) -> None: ...
    def text(self, text: str, scope: Scope, feed: Feed, positional: tuple[str, ...] | None) -> None: ...


def look(finder: Finder, name: str, text: str | None, scope: Scope) -> None:
    """Judge what a variable is set to."""
    if name in danger.CODE_VARIABLES or name.startswith("BASH_FUNC_"):
        if text is None or text.strip() not in _UNSET:
            finder.confirm(f"sets {name}, which changes what other commands run")
    elif name in danger.COMMAND_VARIABLES or danger.COMMAND_VARIABLE.fullmatch(name):
        if text is None:
            finder.confirm(f"sets {name}, a command, to something known only when it runs")
        elif text.strip() not in _UNSET and text != HOLE and not _is_name_of(name, text):
            finder.text(_as_command(text), scope, NO_FEED, None)
    elif name == "ENV" and text and text.startswith((".", "/")):
        finder.confirm("sets ENV, a script that shells run first")
    elif name == "PATH" and text is not None and _is_anybodys(text, scope):
        finder.confirm("looks for programs in a folder that anything may be put into")
    elif name in danger.PROMPT_VARIABLES and text and ("$(" in text or "`" in text):
        finder.text(': "' + text.replace('"', "'") + '"', scope, NO_FEED, None)
    elif (marks := danger.OPTION_VARIABLES.get(name)) and text and any(mark in text for mark in marks):
        finder.confirm(f"sets {name}, which changes what other commands run")


def _is_anybodys(path: str, scope: Scope) -> bool:
    """Whether a search path has the working folder or a temporary one in it."""
    folders = path.split(":") if path else []
    own = tuple(f"{folder}/" for folder in scope.cwd)
    return any(
        folder in {"", ".", "./", "..", *scope.cwd} or (_TEMPORARY.match(folder) and not folder.startswith(own))
        for folder in folders
    )


def _is_name_of(variable: str, text: str) -> bool:
    """Whether a variable such as RM_CMD only says how that very program shall be called."""
    program = text.split(" ", 1)[0].rpartition("/")[2].upper().replace("-", "_")
    return variable in {f"{program}_CMD", f"{program}_COMMAND"}


def _as_command(text: str) -> str:
    """LESSOPEN marks a pipe with `|`, and others a command with `!`."""
    return text.lstrip("|-! ") or ":"
