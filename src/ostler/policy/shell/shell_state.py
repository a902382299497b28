"""What a shell would know while it runs: variables, arguments, functions, and the folder it stands in."""

import os.path
from collections.abc import Iterable
from typing import TypeVar

from ostler.policy.shell.expanded_words import UNKNOWN_TEXT
from ostler.policy.shell.syntax_tree import ShellNode

T = TypeVar("T")
ShellValue = str | tuple[str, ...] | None  # a string, an array, or unknown
MAX_VALUES = 16
MAX_FOLDERS = 6
MAX_VALUE_LENGTH = 16384  # characters of a value that is still followed
UNUSED_PID = "4194305"  # a process id no system gives: stands for numbers that make a fresh name

_UNIQUE_VARIABLES = frozenset({"$", "BASHPID", "RANDOM", "SRANDOM", "EPOCHSECONDS", "EPOCHREALTIME"})


class ShellState:
    """One shell's state; where branches meet, a variable has several possible values and the folder several places."""

    def __init__(self, cwd: str) -> None:
        self.variables: dict[str, tuple[ShellValue, ...]] = {}
        self.chosen_values: dict[str, ShellValue] = {}
        self.functions: dict[str, ShellNode] = {}
        self.aliases: dict[str, str] = {}
        self.positional: tuple[str, ...] | None = ()
        self.cwd: tuple[str, ...] = (cwd,)  # empty: unknown
        self.cwd_if_cd_failed: tuple[str, ...] = ()
        self.directory_stack: list[tuple[str, ...]] = []
        self.in_project_environment = (
            False  # inside a container or an environment of the project, where its own programs are
        )

    def fork(self) -> "ShellState":
        """A copy, as a subshell gets it."""
        twin = ShellState.__new__(ShellState)
        twin.variables = dict(self.variables)
        twin.chosen_values = dict(self.chosen_values)
        twin.functions = dict(self.functions)
        twin.aliases = dict(self.aliases)
        twin.positional = self.positional
        twin.cwd = self.cwd
        twin.cwd_if_cd_failed = self.cwd_if_cd_failed
        twin.directory_stack = list(self.directory_stack)
        twin.in_project_environment = self.in_project_environment
        return twin

    def replace_with(self, other: "ShellState") -> None:
        """Take over another state."""
        self.__dict__.update(other.__dict__)

    def merge(self, others: Iterable["ShellState"]) -> None:
        """Take in the states that other ways through the script would leave."""
        for other in others:
            for name in self.variables.keys() | other.variables.keys():
                values = _union(self.variables.get(name, (None,)), other.variables.get(name, (None,)))
                self.variables[name] = values if len(values) <= MAX_VALUES else (None,)
            self.functions = {**other.functions, **self.functions}
            self.aliases = {**other.aliases, **self.aliases}
            folders = _union(self.cwd, other.cwd) if self.cwd and other.cwd else ()
            self.cwd = folders if len(folders) <= MAX_FOLDERS else ()
            self.cwd_if_cd_failed = _union(self.cwd_if_cd_failed, other.cwd_if_cd_failed)

    def snapshot(self) -> tuple[object, ...]:
        """All that later commands may notice."""
        return dict(self.variables), self.cwd, self.cwd_if_cd_failed, len(self.functions), len(self.aliases)

    # variables

    def assign(self, name: str, value: ShellValue) -> None:
        """Set a variable."""
        self.variables[name] = (value if value is None or sum(map(len, value)) <= MAX_VALUE_LENGTH else None,)
        self.chosen_values.pop(name, None)

    def lookup(self, name: str) -> ShellValue:
        """The one value a variable has here; None when it is unknown or one of several."""
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
        """Those of the names that have more than one possible value."""
        found = [(name, self.variables.get(name, ())) for name in dict.fromkeys(names)]
        return [(name, values) for name, values in found if len(values) > 1]

    def lookup_parameter(self, name: str) -> ShellValue:
        """A positional or special parameter."""
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

    # places

    def change_folder(self, text: str, exists: bool) -> None:
        """`cd text`; when the folder is not there, the old one stays a possibility."""
        before = self.cwd
        if UNKNOWN_TEXT in text:
            self.cwd, self.cwd_if_cd_failed = (), ()
            return
        self.cwd = (
            (join_path("", text),)
            if text[:1] == "/"
            else _union((), tuple(join_path(folder, text) for folder in before))
        )
        self.cwd_if_cd_failed = () if exists else before

    def finish_cd(self) -> None:
        """The next command runs whether `cd` worked or not."""
        if self.cwd_if_cd_failed and self.cwd:
            folders = _union(self.cwd, self.cwd_if_cd_failed)
            self.cwd = folders if len(folders) <= MAX_FOLDERS else ()
        self.cwd_if_cd_failed = ()

    def resolve_paths(self, text: str) -> tuple[str, ...]:
        """The absolute paths a file name may mean; none when the folder is unknown."""
        if text.startswith("/"):
            return (join_path("", text),)
        return tuple(join_path(folder, text) for folder in self.cwd)


def home_folder() -> str:
    """The user's folder."""
    return os.path.expanduser("~")


def join_path(folder: str, text: str) -> str:
    """A name inside a folder, made plain."""
    path = os.path.normpath(f"{folder}/{text}" if text[:1] != "/" else text)
    return path[1:] if path.startswith("//") else path


def _union(first: tuple[T, ...], second: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *second)))
