"""A simple command as rules see it: its words and the paths it names."""

import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.expansion import expand_word
from ostler.policy.shell.filesystem_view import FileSystemView
from ostler.policy.shell.path_patterns import file_patterns
from ostler.policy.shell.shell_state import ShellState
from ostler.policy.shell.syntax_tree import Redirect

_OPTION_VALUE = re.compile(r"(?:--[A-Za-z0-9-]+|[A-Za-z_][A-Za-z0-9_]*)=(.+)|-[A-Za-z](/.+|\.\.?/.+)", re.DOTALL)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_TAKES_PROGRAM = frozenset({"sed", "awk", "gawk", "mawk", "grep", "egrep", "rg", "perl", "ag", "ack"})
_ATTACHED_PROGRAM = re.compile(r"-[A-Za-z0-9]*[ef].+|--(?:regexp|expression|file|source)=.*", re.DOTALL)
_PROGRAM_FILE = re.compile(r"-[A-Za-z0-9]*f|--file")  # the next word is a file, as in `grep -f words a.txt`
_FILE_URL = re.compile(r"file:(?://[^/]*)?(/.*)", re.DOTALL | re.IGNORECASE)
# variables that choose a language, colours, sizes and the like, with values that name no file or program
_HARMLESS_ASSIGNMENT = re.compile(
    r"(?:LANG|LANGUAGE|LC_[A-Z]+|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|TERM|COLORTERM|COLUMNS|LINES|CI|DEBUG|VERBOSE"
    r"|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|PYTHONIOENCODING|PYTHONUTF8|RUST_BACKTRACE"
    r"|GIT_TERMINAL_PROMPT|GIT_OPTIONAL_LOCKS|SOURCE_DATE_EPOCH|IFS)=[^/$`]*"
    r"|TZ=(?!/)[\w+-]+(?:/[\w+-]+)*|(?:\w+_)?PAGER=(?:cat)?"
)
_ONLY_PRINT = frozenset({"echo", "printf", "test", "[", ":", "true", "export", "local", "declare", "exit", "return"})
_UNKNOWN_MARK = "…"
_MAX_PATH_CHECKS = 256  # only this many words are looked up in the file system


class SimpleCommand(msgspec.Struct, frozen=True):
    """A simple command that would run.

    `assignments` are the variables set for it, such as `GIT_DIR=x`, except harmless ones such as `LANG`.
    `patterns` are the file patterns in it. With `has_runtime_words`, words come from a file or command; with
    `has_variable_words`, one starts with the unknown value of a variable of the environment.
    With `literal`, every word is known before it runs. `unknown_reason` is set if the program or subcommand is unknown.
    """

    text: str
    words: tuple[str, ...]
    literal: bool
    paths: tuple[str, ...]
    unknown_reason: str = ""
    assignments: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    has_runtime_words: bool = False
    has_variable_words: bool = False


def make_simple_command(argv: Sequence[ExpandedWord], shell: ShellState, filesystem: FileSystemView) -> SimpleCommand:
    """Create the command for these arguments."""
    words = tuple(arg.text.replace(UNKNOWN_TEXT, _UNKNOWN_MARK) for arg in argv)
    literal = all(arg.literal for arg in argv) and argv[0].exact
    return SimpleCommand(
        " ".join(words),
        words,
        literal,
        tuple(dict.fromkeys(_named_paths(argv, shell, filesystem))),
        patterns=tuple(dict.fromkeys(file_patterns(argv, shell))),
        has_runtime_words=words[0] not in _ONLY_PRINT and any(arg.from_output for arg in argv[1:]),
        has_variable_words=words[0] not in _ONLY_PRINT and any(map(_starts_with_variable, argv[1:])),
    )


def add_redirect_paths(command: SimpleCommand, redirects: Sequence[Redirect], shell: ShellState) -> SimpleCommand:
    """Return the command with the paths of its redirections added."""
    targets = [redirect.target for redirect in redirects if redirect.body is None and redirect.op != "<<<"]
    args = [arg for target in targets for arg in expand_word(target, shell)]
    files = [arg.text for arg in args if arg.exact]
    paths = [path for name in files if not name.isdigit() and name != "-" for path in shell.named_paths(name)]
    paths += [path for arg in args for path in _folders_of_unknown(arg, shell)]
    return msgspec.structs.replace(
        command,
        paths=tuple(dict.fromkeys((*command.paths, *paths))),
        has_variable_words=command.has_variable_words or any(map(_starts_with_variable, args)),
    )


def add_assignments(command: SimpleCommand, assignments: Sequence[str]) -> SimpleCommand:
    """Return the command with the assignments that a rule without them does not allow."""
    kept = tuple(text for text in dict.fromkeys(assignments) if not is_harmless_assignment(text))
    return msgspec.structs.replace(command, assignments=kept) if kept else command


def is_harmless_assignment(text: str) -> bool:
    """Return whether setting a variable, written as `name=value`, changes nothing that matters to a rule."""
    return bool(_HARMLESS_ASSIGNMENT.fullmatch(text))


def describe_assignment(name: str, shell: ShellState) -> str:
    """Return `name=value`, with a mark for what is known only at run time."""
    value = shell.lookup(name)
    text = UNKNOWN_TEXT if value is None else value if isinstance(value, str) else " ".join(value)
    return f"{name}={text.replace(UNKNOWN_TEXT, _UNKNOWN_MARK)}"


def exported_assignments(shell: ShellState, names: Sequence[str], *, exports: bool = False) -> tuple[str, ...]:
    """Return the assignments that change the environment: their variables are there already, or it `exports` them."""
    changed = [name for name in names if exports or name in os.environ]
    kept = [text for text in shell.exported if text.partition("=")[0] not in changed]
    return (*kept, *(describe_assignment(name, shell) for name in changed))


def _named_paths(argv: Sequence[ExpandedWord], shell: ShellState, filesystem: FileSystemView) -> Iterator[str]:
    args = list(argv[1:])
    has_program = any(_ATTACHED_PROGRAM.fullmatch(arg.text) or _PROGRAM_FILE.fullmatch(arg.text) for arg in args)
    if argv[0].text.rpartition("/")[2] in _TAKES_PROGRAM and not has_program:
        program = next((index for index, arg in enumerate(args) if arg.text[:1] != "-"), None)
        args = args if program is None else args[:program] + args[program + 1 :]
    for index, arg in enumerate(args):
        yield from _folders_of_unknown(arg, shell)
        name = _path_text(arg).removeprefix("@")  # as in `curl --data @file`
        if name and (
            "/" in name
            or name in {".", ".."}
            or has_glob(name)
            or (index < _MAX_PATH_CHECKS and _exists(name, shell, filesystem))
        ):
            yield from shell.named_paths(name)


def _starts_with_variable(arg: ExpandedWord) -> bool:
    return arg.text.startswith(UNKNOWN_TEXT) and not arg.piped


def _folders_of_unknown(arg: ExpandedWord, shell: ShellState) -> Iterator[str]:
    """Yield the folder of a path of which only the beginning is known, if that may be outside the working directory."""
    known, unknown, _ = arg.text.partition(UNKNOWN_TEXT)
    folder = known[: known.rfind("/") + 1]
    if unknown and not arg.piped and (folder.startswith("/") or ".." in folder.split("/")):
        yield from shell.named_paths(folder)


def has_glob(text: str) -> bool:
    """Return whether the shell may replace a word by the names of files."""
    return any(mark in text for mark in "*?[")


def _path_text(arg: ExpandedWord) -> str:
    if arg.literal and (local := _FILE_URL.fullmatch(arg.text)):
        return local[1]
    if not arg.literal or _URL.match(arg.text) or "\n" in arg.text:
        return ""
    if match := _OPTION_VALUE.fullmatch(arg.text):
        value = match.group(1) or match.group(2) or ""
        return "" if _URL.match(value) else value
    return "" if arg.text.startswith("-") else arg.text


def _exists(name: str, shell: ShellState, filesystem: FileSystemView) -> bool:
    return len(name) < 256 and any(filesystem.exists(path) for path in shell.resolve_paths(name))
