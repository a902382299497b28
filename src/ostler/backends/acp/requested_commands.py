"""Finds the commands in an agent's permission request: in its raw input under any name, or in its text."""

import shlex
from collections.abc import Iterator
from typing import Any

from ostler.backends.acp.raw_input import is_word_list, iterate_fields, normalize_name
from ostler.text.lazy_regex import lazy_regex

_COMMAND_FIELDS = frozenset(
    ["command", "commands", "cmd", "cmds", "script", "commandline", "shellcommand", "bash", "argv", "program"]
)
_ARGUMENT_FIELDS = ("args", "arguments", "argv", "params", "parameters")
_DESCRIPTIONS = frozenset(
    [
        *("description", "explanation", "reason", "justification", "summary", "title", "purpose", "name", "type", "id"),
        *("cwd", "workdir", "workingdirectory", "directory", "dir", "folder", "status", "toolname", "callid"),
    ]
)
_CODE = lazy_regex(r"(?s)```\w*\n(.*?)```|`([^`]+)`|(?m:^[ \t]*\$ (.+)$)")
_PUNCTUATION = lazy_regex(r"[^\w\s./~$|;&><=*-]")


def commands_in_fields(raw_input: Any) -> list[str]:
    """Return the commands in fields that are usually called so."""
    commands: list[str] = []
    for name, value, parent in iterate_fields(raw_input):
        if isinstance(value, dict):
            commands += _with_arguments(value)
        elif name in _COMMAND_FIELDS:
            commands += _command_lines(value, parent, several=name.endswith("s"))
    return list(dict.fromkeys(commands))


def all_texts(raw_input: Any) -> list[str]:
    """Return every text that could be a command, except descriptions; a list of words is one command."""
    texts: list[str] = []
    for name, value, parent in iterate_fields(raw_input):
        if name not in _DESCRIPTIONS:
            texts += _command_lines(value, parent)
    return list(dict.fromkeys(texts))


def commands_in_text(text: str) -> list[str]:
    """Return the code in a text or, if there is none, its lines without punctuation, which a shell could not parse."""
    code = [group.strip() for groups in _CODE.findall(text) for group in groups if group.strip()]
    return code or [line for part in text.splitlines() if (line := _PUNCTUATION.sub(" ", part).strip())]


def _with_arguments(fields: dict[Any, Any]) -> Iterator[str]:
    """Yield the command line of a program whose arguments are in a field of their own."""
    named = {normalize_name(str(key)): value for key, value in fields.items()}
    arguments = next((named[name] for name in _ARGUMENT_FIELDS if isinstance(named.get(name), list)), None)
    if arguments:
        words = shlex.join(map(str, arguments))
        programs = [named[name] for name in (*_COMMAND_FIELDS, "executable", "binary") if name in named]
        yield from (f"{program} {words}" for program in programs if isinstance(program, str) and program)


def _command_lines(value: Any, parent: Any, *, several: bool = False) -> list[str]:
    """Return a text, or a list of words joined to one command; with `several`, a list may contain commands instead."""
    if isinstance(value, str):
        return [value] if value.strip() and not is_word_list(parent) else []
    if not value or not is_word_list(value):
        return []
    several = several and not isinstance(parent, list)
    is_list_of_commands = several or any(character.isspace() for character in value[0].strip())
    return [item for item in value if item.strip()] if is_list_of_commands else [shlex.join(value)]
