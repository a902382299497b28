"""The record of one simple command: its words as rules see them, and the paths it names."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.expand import fields
from ostler.policy.shell.places import Places
from ostler.policy.shell.scope import Scope
from ostler.policy.shell.tree import Redirect

_VALUE = re.compile(r"(?:--[A-Za-z0-9-]+|[A-Za-z_][A-Za-z0-9_]*)=(.+)|-[A-Za-z](/.+|\.\.?/.+)", re.DOTALL)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_TAKES_PROGRAM = frozenset({"sed", "awk", "gawk", "mawk", "grep", "egrep", "rg", "perl", "ag", "ack"})
_UNKNOWN = "…"
_ASKED = 256  # so many plain words are looked for in the file system


class Simple(msgspec.Struct, frozen=True):
    """A simple command that would run.

    `literal` says that every word is known before it does; `stranger`, why nobody can tell what it does.
    """

    text: str
    words: tuple[str, ...]
    literal: bool
    paths: tuple[str, ...]
    stranger: str = ""


def record(argv: Sequence[Arg], scope: Scope, places: Places) -> Simple:
    """The record of a command with these arguments."""
    words = tuple(arg.text.replace(HOLE, _UNKNOWN) for arg in argv)
    literal = all(arg.literal for arg in argv) and argv[0].exact
    return Simple(" ".join(words), words, literal, tuple(dict.fromkeys(_paths(argv, scope, places))))


def with_files(simple: Simple, redirects: Sequence[Redirect], scope: Scope) -> Simple:
    """The record of a command with the files its redirections name."""
    targets = [redirect.target for redirect in redirects if redirect.body is None and redirect.op != "<<<"]
    files = [arg.text for target in targets for arg in fields(target, scope) if arg.exact]
    paths = [path for name in files if not name.isdigit() and name != "-" for path in scope.places(name)]
    return msgspec.structs.replace(simple, paths=tuple(dict.fromkeys((*simple.paths, *paths))))


def _paths(argv: Sequence[Arg], scope: Scope, places: Places) -> Iterator[str]:
    args = list(argv[1:])
    if argv[0].text.rpartition("/")[2] in _TAKES_PROGRAM:
        program = next((at for at, arg in enumerate(args) if arg.text[:1] != "-"), None)
        args = args if program is None else args[:program] + args[program + 1 :]
    for at, arg in enumerate(args):
        name = _path_text(arg)
        if name and ("/" in name or name in {".", ".."} or (at < _ASKED and _is_there(name, scope, places))):
            yield from scope.places(name)


def _path_text(arg: Arg) -> str:
    if not arg.literal or _ADDRESS.match(arg.text) or "\n" in arg.text:
        return ""
    if found := _VALUE.fullmatch(arg.text):
        value = found.group(1) or found.group(2) or ""
        return value if "/" in value and not _ADDRESS.match(value) else ""
    return "" if arg.text.startswith("-") else arg.text


def _is_there(name: str, scope: Scope, places: Places) -> bool:
    return len(name) < 256 and any(places.exists(path) for path in scope.places(name))
