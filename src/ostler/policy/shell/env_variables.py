"""Flags environment variables that make other programs run code (pagers, editors, preloads)."""

import re
from typing import TYPE_CHECKING

from ostler.policy import danger_tables
from ostler.policy.shell.command_call import NO_STDIN
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT
from ostler.policy.shell.program_table import group
from ostler.policy.shell.shell_state import ShellState

if TYPE_CHECKING:
    from ostler.policy.shell.command_evaluator import CommandEvaluator

_TEMPORARY_FOLDER = re.compile(r"/(?:var/)?tmp(?:/|$)|/dev/shm")
_DISABLED_VALUES = frozenset({"", "/dev/null", "0", "false", "no", "none", "off"})


def check_variable(evaluator: "CommandEvaluator", name: str, text: str | None, shell: ShellState) -> None:
    """Report or evaluate the value of an environment variable that makes other programs run code."""
    if name in group("code-variables") or name.startswith("BASH_FUNC_"):
        if text is None or text.strip() not in _DISABLED_VALUES:
            evaluator.confirm(f"sets {name}, which changes what other commands run")
    elif name in group("command-variables") or danger_tables.COMMAND_VARIABLE_PATTERN.fullmatch(name):
        if text is None:
            evaluator.confirm(f"sets {name}, which contains a command, to a value known only at run time")
        elif text.strip() not in _DISABLED_VALUES and text != UNKNOWN_TEXT and not _names_same_program(name, text):
            evaluator.evaluate_text(_strip_command_prefix(text), shell, NO_STDIN, None)
    elif name == "ENV" and text and text.startswith((".", "/")):
        evaluator.confirm("sets ENV, a script that shells run at startup")
    elif name == "PATH" and text is None:
        evaluator.confirm("sets PATH to a value known only at run time")
    elif name == "PATH" and text is not None and _has_writable_folder(text, shell):
        evaluator.confirm("adds the working folder or a temporary folder to PATH")
    elif name in danger_tables.PROMPT_VARIABLES and text and ("$(" in text or "`" in text):
        evaluator.evaluate_text(': "' + text.replace('"', "'") + '"', shell, NO_STDIN, None)
    elif (marks := danger_tables.OPTION_VARIABLES.get(name)) and text and any(mark in text for mark in marks):
        evaluator.confirm(f"sets {name}, which changes what other commands run")


def _has_writable_folder(path: str, shell: ShellState) -> bool:
    """Return whether a search path contains the working folder or a temporary folder."""
    folders = path.split(":") if path else []
    below_cwd = tuple(f"{folder}/" for folder in shell.cwd)
    return any(
        folder in {"", ".", "./", "..", *shell.cwd}
        or (_TEMPORARY_FOLDER.match(folder) and not folder.startswith(below_cwd))
        for folder in folders
    )


def _names_same_program(variable: str, text: str) -> bool:
    """Return whether a variable such as RM_CMD is set to the program it is named after."""
    program = text.split(" ", 1)[0].rpartition("/")[2].upper().replace("-", "_")
    return variable in {f"{program}_CMD", f"{program}_COMMAND"}


def _strip_command_prefix(text: str) -> str:
    """Remove the `|` or `!` that marks a command in LESSOPEN and other variables."""
    return text.lstrip("|-! ") or ":"
