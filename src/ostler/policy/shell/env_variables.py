"""Variables that are programs in disguise: a pager, an editor, a library to load first."""

import re
from typing import Protocol

from ostler.policy import danger_tables
from ostler.policy.shell.command_call import NO_STDIN, StdinSource
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT
from ostler.policy.shell.shell_state import ShellState

_TEMPORARY_FOLDER = re.compile(r"/(?:var/)?tmp(?:/|$)|/dev/shm")
_DISABLED_VALUES = frozenset({"", "/dev/null", "0", "false", "no", "none", "off"})


class FindingSink(Protocol):
    """Who is told of findings."""

    def confirm(self, reason: str) -> None: ...
    def evaluate_text(
        self, text: str, shell: ShellState, stdin: StdinSource, positional: tuple[str, ...] | None
    ) -> None: ...


def check_variable(sink: FindingSink, name: str, text: str | None, shell: ShellState) -> None:
    """Judge what a variable is set to."""
    if name in danger_tables.CODE_VARIABLES or name.startswith("BASH_FUNC_"):
        if text is None or text.strip() not in _DISABLED_VALUES:
            sink.confirm(f"sets {name}, which changes what other commands run")
    elif name in danger_tables.COMMAND_VARIABLES or danger_tables.COMMAND_VARIABLE_PATTERN.fullmatch(name):
        if text is None:
            sink.confirm(f"sets {name}, a command, to something known only when it runs")
        elif text.strip() not in _DISABLED_VALUES and text != UNKNOWN_TEXT and not _names_same_program(name, text):
            sink.evaluate_text(_strip_command_prefix(text), shell, NO_STDIN, None)
    elif name == "ENV" and text and text.startswith((".", "/")):
        sink.confirm("sets ENV, a script that shells run first")
    elif name == "PATH" and text is not None and _has_writable_folder(text, shell):
        sink.confirm("looks for programs in a folder that anything may be put into")
    elif name in danger_tables.PROMPT_VARIABLES and text and ("$(" in text or "`" in text):
        sink.evaluate_text(': "' + text.replace('"', "'") + '"', shell, NO_STDIN, None)
    elif (marks := danger_tables.OPTION_VARIABLES.get(name)) and text and any(mark in text for mark in marks):
        sink.confirm(f"sets {name}, which changes what other commands run")


def _has_writable_folder(path: str, shell: ShellState) -> bool:
    """Whether a search path has the working folder or a temporary one in it."""
    folders = path.split(":") if path else []
    own = tuple(f"{folder}/" for folder in shell.cwd)
    return any(
        folder in {"", ".", "./", "..", *shell.cwd} or (_TEMPORARY_FOLDER.match(folder) and not folder.startswith(own))
        for folder in folders
    )


def _names_same_program(variable: str, text: str) -> bool:
    """Whether a variable such as RM_CMD only says how that very program shall be called."""
    program = text.split(" ", 1)[0].rpartition("/")[2].upper().replace("-", "_")
    return variable in {f"{program}_CMD", f"{program}_COMMAND"}


def _strip_command_prefix(text: str) -> str:
    """LESSOPEN marks a pipe with `|`, and others a command with `!`."""
    return text.lstrip("|-! ") or ":"
