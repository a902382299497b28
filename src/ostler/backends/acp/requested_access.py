"""Determines what an agent's permission request would access: its kind, paths and commands.

Agents report them in different places: in fields of the protocol, in the raw input under any name, or only in text.
"""

import msgspec

from ostler.backends.acp.raw_input import RawInputTooLarge, normalize_name
from ostler.backends.acp.requested_commands import all_texts, commands_in_fields, commands_in_text
from ostler.backends.acp.requested_paths import (
    clean_path,
    file_names_in_fields,
    folders_in_fields,
    outside_paths_in_text,
    paths_in_fields,
    paths_in_text,
    patterns_in_fields,
)
from ostler.backends.acp.tool_call_display import TOOL_KINDS, edited_paths
from ostler.wire.acp import ToolCallFields, text_of

MAX_TEXT_LENGTH = 200_000
MAX_HINTS = 100
_FILE_KINDS = frozenset(["read", "edit", "delete", "move", "search"])
_TITLE_NAMES_PATHS = frozenset(["read", "edit", "delete", "move", "other"])
_OTHER_NAMES = {
    **dict.fromkeys(["write", "create", "modify", "update", "patch", "append", "replace", "insert", "copy"], "edit"),
    **dict.fromkeys(["remove", "unlink", "rm"], "delete"),
    **dict.fromkeys(["rename", "mv"], "move"),
    **dict.fromkeys(["view", "open", "cat"], "read"),
    **dict.fromkeys(["run", "shell", "bash", "terminal", "command", "exec"], "execute"),
}


class RequestedAccess(msgspec.Struct, frozen=True):
    """What a call would access. The kind is `other` if it is unknown; `is_complete` is False if it was too large.

    `hints` are lines of text that may contain the command, if the call names none.
    """

    kind: str
    paths: tuple[str, ...] = ()
    command: str = ""
    hints: tuple[str, ...] = ()
    is_complete: bool = True


def requested_access(call: ToolCallFields) -> RequestedAccess:
    kind = _kind(call)
    if len(text_of(call)) > MAX_TEXT_LENGTH:
        return RequestedAccess(kind, is_complete=False)
    try:
        paths = tuple(dict.fromkeys(path for path in map(clean_path, _paths(call, kind)) if path))
        if not call.kind and paths:
            kind = _kind_from_words(call)
        commands = commands_in_fields(call.raw_input)
        if kind == "execute" and not commands:
            commands = all_texts(call.raw_input)
        hints = () if commands or kind != "execute" else tuple(commands_in_text(text_of(call)))
        if len(hints) > MAX_HINTS:
            return RequestedAccess(kind, is_complete=False)
        return RequestedAccess(kind, paths, "\n".join(commands), hints)
    except RawInputTooLarge:
        return RequestedAccess(kind, is_complete=False)


def _kind(call: ToolCallFields) -> str:
    kind = normalize_name(call.kind or "other")
    known = {normalize_name(name): name for name in TOOL_KINDS}
    return known.get(kind) or _OTHER_NAMES.get(kind, "other")


def _kind_from_words(call: ToolCallFields) -> str:
    """Return the kind that the name or title of a call without a kind begins with."""
    words = (call.name or call.title or "").replace("_", " ").split()
    word = normalize_name(words[0]) if words else ""
    return word if word in ("read", "edit", "delete", "move") else _OTHER_NAMES.get(word, "other")


def _paths(call: ToolCallFields, kind: str) -> list[str]:
    locations = [location.path for location in call.locations or () if location.path]
    named = [*locations, *edited_paths(call)]
    if kind == "execute":
        return [*named, *folders_in_fields(call.raw_input)]
    named += paths_in_fields(call.raw_input, is_file_access=kind in _FILE_KINDS)
    if kind in _TITLE_NAMES_PATHS:
        named += outside_paths_in_text(call.title or "")
    if named or kind not in _FILE_KINDS:
        return named
    in_text = paths_in_text(f"{call.title or ''}\n{text_of(call)}")
    if kind == "search":  # a title that repeats the pattern names no path
        patterns = patterns_in_fields(call.raw_input)
        in_text = [path for path in in_text if not any(path in pattern for pattern in patterns)]
    return file_names_in_fields(call.raw_input) or in_text
