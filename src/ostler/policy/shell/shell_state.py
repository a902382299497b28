"""The state of a simulated shell: variables, arguments, functions and working directory."""

import os.path
import re
from collections.abc import Iterable
from typing import TypeVar

from ostler.policy.shell.expanded_words import UNKNOWN_TEXT
from ostler.policy.shell.syntax_tree import ShellNode

T = TypeVar("T")
ShellValue = str | tuple[str, ...] | None  # a string, an array, or unknown
MAX_VALUES = 16
MAX_FOLDERS = 6
MAX_VALUE_LENGTH = 16384  # in characters; longer values are unknown
UNUSED_PID = "4194305"  # a process id that no system uses: placeholder for values that make a name unique

INTEGER_VARIABLES = frozenset({"RANDOM", "SRANDOM", "SECONDS", "HISTCMD", "OPTIND", "LINENO", "BASHPID"})
_NUMBER = re.compile(r"\s*-?\d+\s*")
_UNIQUE_VARIABLES = frozenset({"$", "BASHPID", "RANDOM", "SRANDOM", "EPOCHSECONDS", "EPOCHREALTIME"})


class ShellState:
    """The state of a shell. After branches, a variable and the working directory can have several possible values."""

    def __init__(self, cwd: str) -> None:
        self.variables: dict[str, tuple[ShellValue, ...]] = {}
        self.chosen_values: dict[str, ShellValue] = {}
        self.functions: dict[str, ShellNode] = {}
        self.aliases: dict[str, str] = {}
        self.positional: tuple[str, ...] | None = ()
        self.cwd: tuple[str, ...] = (cwd,)  # empty: unknown
        self.cwd_if_cd_failed: tuple[str, ...] = ()
        self.directory_stack: list[tuple[str, ...]] = []
        self.tainted: frozenset[str] = frozenset()  # variables with text that is known only at run time
        self.file_names: frozenset[str] = frozenset()  # loop variables that hold the matches of a pattern
        self.numbers: frozenset[str] = frozenset()  # variables that hold a number, known or not
        self.integers: frozenset[str] = INTEGER_VARIABLES  # the shell evaluates what is assigned to them
        self.associative: frozenset[str] = frozenset()
        self.exported: tuple[str, ...] = ()  # assignments that change the environment of later commands
        self.exports_all = False  # after `set -a`
        self.tests_evaluate = False  # `[ x -eq 1 ]` evaluates its numbers as arithmetic, as in zsh and ksh
        self.in_project_environment = False  # in a container or environment with the project's own programs

    def fork(self) -> "ShellState":
        """Return a copy, as for a subshell."""
        copy = ShellState.__new__(ShellState)
        copy.__dict__.update(self.__dict__)
        copy.variables = dict(self.variables)
        copy.chosen_values = dict(self.chosen_values)
        copy.functions = dict(self.functions)
        copy.aliases = dict(self.aliases)
        copy.directory_stack = list(self.directory_stack)
        return copy

    def replace_with(self, other: "ShellState") -> None:
        """Replace this state with another one."""
        self.__dict__.update(other.__dict__)

    def merge(self, others: Iterable["ShellState"]) -> None:
        """Add the possible values of other states, which result from other execution paths."""
        for other in others:
            self.numbers = frozenset(
                name
                for name in self.numbers | other.numbers
                if all(name in state.numbers or name not in state.variables for state in (self, other))
            )
            self.tainted |= other.tainted
            self.file_names |= other.file_names
            self.exported = _union(self.exported, other.exported)
            self.exports_all |= other.exports_all
            self.integers |= other.integers
            self.associative &= other.associative
            for name in self.variables.keys() | other.variables.keys():
                values = _union(self.variables.get(name, (None,)), other.variables.get(name, (None,)))
                self.variables[name] = values if len(values) <= MAX_VALUES else (None,)
            self.functions = {**other.functions, **self.functions}
            self.aliases = {**other.aliases, **self.aliases}
            folders = _union(self.cwd, other.cwd) if self.cwd and other.cwd else ()
            self.cwd = folders if len(folders) <= MAX_FOLDERS else ()
            self.cwd_if_cd_failed = _union(self.cwd_if_cd_failed, other.cwd_if_cd_failed)

    def snapshot(self) -> tuple[object, ...]:
        """Return everything that can affect later commands."""
        return (
            dict(self.variables),
            self.tainted,
            self.numbers,
            self.cwd,
            self.cwd_if_cd_failed,
            len(self.functions),
            len(self.aliases),
        )

    # variables

    def assign(self, name: str, value: ShellValue, *, tainted: bool | None = None, is_number: bool = False) -> None:
        """Set a variable. Unless `tainted` is given, text that is known only at run time makes it tainted."""
        if tainted is None:
            tainted = value is None or UNKNOWN_TEXT in "".join(value)
        is_number = is_number or (isinstance(value, str) and bool(_NUMBER.fullmatch(value)))
        self.file_names -= {name}
        self.tainted = self.tainted | {name} if tainted else self.tainted - {name}
        self.numbers = self.numbers | {name} if is_number and not tainted else self.numbers - {name}
        self.variables[name] = (value if value is None or sum(map(len, value)) <= MAX_VALUE_LENGTH else None,)
        self.chosen_values.pop(name, None)

    def restore_variable(self, name: str, before: "ShellState") -> None:
        """Give a variable the value of an earlier state, as after `name=value command`."""
        self.variables.pop(name, None)
        if name in before.variables:
            self.variables[name] = before.variables[name]
        self.tainted = self.tainted | {name} if name in before.tainted else self.tainted - {name}
        self.numbers = self.numbers | {name} if name in before.numbers else self.numbers - {name}

    def lookup(self, name: str) -> ShellValue:
        """Return the value of a variable, or None if it is unknown or ambiguous."""
        if name in self.chosen_values:
            return self.chosen_values[name]
        values = self.variables.get(name)
        if values is not None:
            return values[0] if len(values) == 1 else None
        if name in _UNIQUE_VARIABLES:
            return UNUSED_PID
        return self._default_value(name)

    def _default_value(self, name: str) -> ShellValue:
        if name == "HOME":
            return home_folder()
        if name == "PWD" and len(self.cwd) == 1:
            return self.cwd[0]
        return {"IFS": " \t\n", "SHELL": "/bin/sh"}.get(name)

    def ambiguous_variables(self, names: Iterable[str]) -> list[tuple[str, tuple[ShellValue, ...]]]:
        """Return the variables among `names` that have several possible values, with these values."""
        variables = [(name, self.variables.get(name, ())) for name in dict.fromkeys(names)]
        return [(name, values) for name, values in variables if len(values) > 1]

    def lookup_parameter(self, name: str) -> ShellValue:
        """Return the value of a positional or special parameter, or None if it is unknown."""
        if name == "$":
            return UNUSED_PID
        if self.positional is None or not (name.isdigit() or name in {"@", "*", "#"}):
            return None
        if name in {"@", "*"}:
            return self.positional
        if name == "#":
            return str(len(self.positional))
        number = int(name[:6])
        if not number:
            return None
        return self.positional[number - 1] if number <= len(self.positional) else ""

    # paths

    def change_folder(self, text: str, exists: bool) -> None:
        """Apply `cd text`. If the folder does not exist, the old one remains possible."""
        previous = self.cwd
        if UNKNOWN_TEXT in text:
            self.cwd, self.cwd_if_cd_failed = (), ()
            return
        self.cwd = (
            (join_path("", text),)
            if text[:1] == "/"
            else _union((), tuple(join_path(folder, text) for folder in previous))
        )
        self.cwd_if_cd_failed = () if exists else previous

    def finish_cd(self) -> None:
        """Add the old folder as a possibility if the last `cd` may have failed."""
        if self.cwd_if_cd_failed and self.cwd:
            folders = _union(self.cwd, self.cwd_if_cd_failed)
            self.cwd = folders if len(folders) <= MAX_FOLDERS else ()
        self.cwd_if_cd_failed = ()

    def resolve_paths(self, text: str) -> tuple[str, ...]:
        """Return the possible absolute paths of a file name; empty if the working directory is unknown."""
        if text.startswith("/"):
            return (join_path("", text),)
        return tuple(join_path(folder, text) for folder in self.cwd)

    def named_paths(self, text: str) -> tuple[str, ...]:
        """Return the possible absolute paths, also with `..`, which may follow a symlink and then leads elsewhere."""
        paths = self.resolve_paths(text)
        if ".." not in text.split("/"):
            return paths
        return (*paths, text) if text.startswith("/") else (*paths, *(f"{folder}/{text}" for folder in self.cwd))


def home_folder() -> str:
    """Return the user's home directory."""
    return os.path.expanduser("~")


def join_path(folder: str, text: str) -> str:
    """Join and normalise a path."""
    path = os.path.normpath(f"{folder}/{text}" if text[:1] != "/" else text)
    return path[1:] if path.startswith("//") else path


def _union(first: tuple[T, ...], second: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *second)))
