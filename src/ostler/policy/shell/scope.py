"""What a shell would know while it runs: variables, arguments, functions, and the folder it stands in."""

import os.path
from collections.abc import Iterable
from typing import TypeVar

from ostler.policy.shell.args import HOLE
from ostler.policy.shell.tree import Node

T = TypeVar("T")
Value = str | tuple[str, ...] | None  # a string, an array, or unknown
ALTERNATIVES = 16
FOLDERS = 6
LONGEST = 16384  # characters of a value that is still followed
NEVER_YET = "4194305"  # a process id no system gives: stands for numbers that make a fresh name

_FRESH = frozenset({"$", "BASHPID", "RANDOM", "SRANDOM", "EPOCHSECONDS", "EPOCHREALTIME"})


class Scope:
    """One shell's state; where branches meet, a variable has several possible values and the folder several places."""

    def __init__(self, cwd: str) -> None:
        self.vars: dict[str, tuple[Value, ...]] = {}
        self.choice: dict[str, Value] = {}
        self.functions: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
        self.positional: tuple[str, ...] | None = ()
        self.cwd: tuple[str, ...] = (cwd,)  # empty: unknown
        self.if_cd_failed: tuple[str, ...] = ()
        self.stack: list[tuple[str, ...]] = []
        self.own = False  # inside a container or an environment of the project, where its own programs are

    def fork(self) -> "Scope":
        """A copy, as a subshell gets it."""
        twin = Scope.__new__(Scope)
        twin.vars = dict(self.vars)
        twin.choice = dict(self.choice)
        twin.functions = dict(self.functions)
        twin.aliases = dict(self.aliases)
        twin.positional = self.positional
        twin.cwd = self.cwd
        twin.if_cd_failed = self.if_cd_failed
        twin.stack = list(self.stack)
        twin.own = self.own
        return twin

    def become(self, other: "Scope") -> None:
        """Take over another state."""
        self.__dict__.update(other.__dict__)

    def join(self, others: Iterable["Scope"]) -> None:
        """Take in the states that other ways through the script would leave."""
        for other in others:
            for name in self.vars.keys() | other.vars.keys():
                values = _union(self.vars.get(name, (None,)), other.vars.get(name, (None,)))
                self.vars[name] = values if len(values) <= ALTERNATIVES else (None,)
            self.functions = {**other.functions, **self.functions}
            self.aliases = {**other.aliases, **self.aliases}
            folders = _union(self.cwd, other.cwd) if self.cwd and other.cwd else ()
            self.cwd = folders if len(folders) <= FOLDERS else ()
            self.if_cd_failed = _union(self.if_cd_failed, other.if_cd_failed)

    def marks(self) -> tuple[object, ...]:
        """All that later commands may notice."""
        return dict(self.vars), self.cwd, self.if_cd_failed, len(self.functions), len(self.aliases)

    # variables

    def assign(self, name: str, value: Value) -> None:
        """Set a variable."""
        self.vars[name] = (value if value is None or sum(map(len, value)) <= LONGEST else None,)
        self.choice.pop(name, None)

    def lookup(self, name: str) -> Value:
        """The one value a variable has here; None when it is unknown or one of several."""
        if name in self.choice:
            return self.choice[name]
        values = self.vars.get(name)
        if values is not None:
            return values[0] if len(values) == 1 else None
        if name in _FRESH:
            return NEVER_YET
        return self._inherited(name)

    def _inherited(self, name: str) -> Value:
        if name == "HOME":
            return home()
        if name == "PWD" and len(self.cwd) == 1:
            return self.cwd[0]
        return {"IFS": " \t\n", "SHELL": "/bin/sh"}.get(name)

    def several(self, names: Iterable[str]) -> list[tuple[str, tuple[Value, ...]]]:
        """Those of the names that have more than one possible value."""
        found = [(name, self.vars.get(name, ())) for name in dict.fromkeys(names)]
        return [(name, values) for name, values in found if len(values) > 1]

    def argument(self, name: str) -> Value:
        """A positional or special parameter."""
        if name == "$":
            return NEVER_YET
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

    def change_folder(self, text: str, there: bool) -> None:
        """`cd text`; when the folder is not there, the old one stays a possibility."""
        before = self.cwd
        if HOLE in text:
            self.cwd, self.if_cd_failed = (), ()
            return
        self.cwd = (join("", text),) if text[:1] == "/" else _union((), tuple(join(folder, text) for folder in before))
        self.if_cd_failed = () if there else before

    def cd_is_over(self) -> None:
        """The next command runs whether `cd` worked or not."""
        if self.if_cd_failed and self.cwd:
            folders = _union(self.cwd, self.if_cd_failed)
            self.cwd = folders if len(folders) <= FOLDERS else ()
        self.if_cd_failed = ()

    def places(self, text: str) -> tuple[str, ...]:
        """The absolute paths a file name may mean; none when the folder is unknown."""
        if text.startswith("/"):
            return (join("", text),)
        return tuple(join(folder, text) for folder in self.cwd)


def home() -> str:
    """The user's folder."""
    return os.path.expanduser("~")


def join(folder: str, text: str) -> str:
    """A name inside a folder, made plain."""
    path = os.path.normpath(f"{folder}/{text}" if text[:1] != "/" else text)
    return path[1:] if path.startswith("//") else path


def _union(first: tuple[T, ...], second: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *second)))
