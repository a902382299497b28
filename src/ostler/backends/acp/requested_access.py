"""Finds the paths and commands that an agent's permission request names: in its fields, its raw input or its text."""

import re
from collections.abc import Iterator
from typing import Any

from ostler.backends.acp.tool_call_display import edited_paths
from ostler.text.lazy_regex import lazy_regex
from ostler.wire.acp import ToolCallFields, text_of

MAX_VALUES = 1000
MAX_DEPTH = 6
MAX_TEXT_LENGTH = 20_000
_FILE_KINDS = frozenset(["read", "edit", "delete", "move", "search"])

# Names of raw input fields, without case and separators: file_path, filePath, absolutePath, target_file, uri …
_PATH_FIELD = lazy_regex(r"(?:path|file|filename|dir|directory|folder|uri|cwd|source|destination|target)s?$")
_COMMAND_FIELDS = frozenset(["command", "commands", "cmd", "script", "commandline", "shellcommand", "bash", "argv"])
_ABSOLUTE = lazy_regex(r"(?:~?/|~$|file://)\S*")
_TEXT_PATH = lazy_regex(
    r"""(?:^|(?<=[\s'"`(\[=:]))(?:file://|~)?(?:/[^\s'"`<>|;,()\[\]]+|[\w.@+-]+(?:/[\w.@+-]+)+|[\w@+-]*\.?[\w@+-]+\.\w{1,8})"""
)


def requested_paths(call: ToolCallFields) -> tuple[str, ...]:
    """Return the paths that a call names: in its locations, diffs and raw input.

    If there are none, file access is searched for paths in the title and text.
    """
    locations = [location.path for location in call.locations or ()]
    named = [*locations, *edited_paths(call), *_raw_paths(call.raw_input)]
    found = [path for path in named if path] or (_text_paths(call) if call.kind in _FILE_KINDS else [])
    return tuple(dict.fromkeys(map(_without_scheme, found)))


def requested_command(call: ToolCallFields) -> str:
    """Return every command in the raw input, one per line, or an empty string."""
    commands = (
        _as_command(value) for name, value in _fields(call.raw_input) if _normalize_name(name) in _COMMAND_FIELDS
    )
    return "\n".join(dict.fromkeys(command for command in commands if command))


def _raw_paths(raw_input: Any) -> list[str]:
    return [
        value
        for name, value in _fields(raw_input)
        if isinstance(value, str) and (_PATH_FIELD.search(_normalize_name(name)) or _ABSOLUTE.fullmatch(value))
    ]


def _text_paths(call: ToolCallFields) -> list[str]:
    text = f"{call.title or ''}\n{text_of(call)}"[:MAX_TEXT_LENGTH]
    return [match.rstrip(".:") for match in _TEXT_PATH.findall(text)]


def _fields(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each field, at any level; items of a list have the name of the list."""
    pending = [(name, value, depth)]
    for _ in range(MAX_VALUES):
        if not pending:
            return
        name, value, depth = pending.pop()
        yield name, value
        if depth >= MAX_DEPTH:
            continue
        if isinstance(value, dict):
            pending += [(str(key), item, depth + 1) for key, item in value.items()]
        elif isinstance(value, list) and _normalize_name(name) not in _COMMAND_FIELDS:
            pending += [(name, item, depth + 1) for item in value]


def _as_command(value: Any) -> str:
    if isinstance(value, list):
        import shlex

        return shlex.join(map(str, value))
    return value if isinstance(value, str) else ""


def _normalize_name(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _without_scheme(path: str) -> str:
    if not path.startswith("file://"):
        return path
    from urllib.parse import unquote

    return unquote(path.removeprefix("file://"))
