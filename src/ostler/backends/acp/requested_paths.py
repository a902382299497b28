"""Finds the paths in an agent's permission request: in its fields, its raw input under any name, or its text."""

import os
from collections.abc import Iterator
from typing import Any

from ostler.backends.acp.raw_input import iterate_fields
from ostler.text.lazy_regex import lazy_regex

MAX_LENGTH = 4096  # of a path
_COMMENTS = ("// ", "/*")

# Names of raw input fields as `normalize_name` returns them: filepath, absolutepath, targetfile, uri …
_PATH_FIELD = lazy_regex(
    r"(?:path|file|filename|dir|directory|folder|uri|cwd|source|destination|target|src|dst|dest|location|root)s?$"
)
_MOVE_FIELDS = frozenset(["from", "to"])
_FOLDER_FIELDS = frozenset(["cwd", "workdir", "workingdirectory", "directory", "dir", "folder", "root"])
_PATTERN_FIELDS = frozenset(["pattern", "regex", "query", "search"])
_CONTENT_FIELDS = _PATTERN_FIELDS | frozenset(
    [
        *(
            "content",
            "contents",
            "text",
            "newtext",
            "oldtext",
            "newstring",
            "oldstring",
            "newstr",
            "oldstr",
            "filetext",
        ),
        *("inserttext", "replacement", "body", "data", "old", "new", "replace"),
        *("description", "explanation", "reason", "justification", "summary", "title", "prompt", "instructions", "url"),
    ]
)
_PATCH_PATH = lazy_regex(
    r"(?m)^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |rename (?:from|to) |(?:---|\+\+\+) (?:[ab]/)?)"
    r"([^\t\r\n]+)"
)
_LEAVES_WORKSPACE = lazy_regex(r"""(?:~[\w.-]*(?:/|$)|\$\{?\w+\}?/|/|file:|(?:[^\s/]+/)*\.\.(?:/|$))[^\n]*""")
_RELATIVE = lazy_regex(r"[^\s/:]+(?:/[^\s/]+)+/?|\./\S*")
_FILE_NAME = lazy_regex(r"\.?[\w@+-]+(?:\.[\w@+-]+)+|\.\w[\w-]+")
_TEXT_PATH = lazy_regex(
    r"""(?<![\w./@+~$-])(?:file:(?://)?|~[\w.-]*|\$\{?\w+\}?)?"""
    r"""(?:/[^\s'"`<>|;,()\[\]{}“”]+|[\w.@+-]+(?:/[\w.@+-]+)+|\.?[\w@+-]+(?:\.[\w@+-]+)+|\.\w[\w-]+)"""
)


def paths_in_fields(raw_input: Any, *, is_file_access: bool) -> list[str]:
    """Return the paths in fields that usually have one, and values of other fields that look like a path.

    Relative paths in other fields are used only in calls that access files.
    """
    paths: list[str] = []
    for name, value, _ in iterate_fields(raw_input):
        if not isinstance(value, str) or not value.strip():
            continue
        if _PATH_FIELD.search(name) or name in _MOVE_FIELDS:
            paths.append(value)
        elif name not in _CONTENT_FIELDS:
            paths += _paths_in_value(value, is_file_access=is_file_access)
    return paths


def folders_in_fields(raw_input: Any) -> list[str]:
    """Return the working directories in the raw input of a command."""
    return [value for name, value, _ in iterate_fields(raw_input) if name in _FOLDER_FIELDS and isinstance(value, str)]


def file_names_in_fields(raw_input: Any) -> list[str]:
    """Return values that look like the name of a file, such as `notes.txt`."""
    fields = (value for name, value, _ in iterate_fields(raw_input) if name not in _CONTENT_FIELDS)
    return [value for value in fields if isinstance(value, str) and _FILE_NAME.fullmatch(value.strip())]


def patterns_in_fields(raw_input: Any) -> list[str]:
    """Return the texts that a search looks for."""
    fields = (value for name, value, _ in iterate_fields(raw_input) if name in _PATTERN_FIELDS)
    return [value for value in fields if isinstance(value, str)]


def paths_in_text(text: str) -> list[str]:
    return [match.rstrip(".:") for match in _TEXT_PATH.findall(text)]


def outside_paths_in_text(text: str) -> list[str]:
    """Return the paths in a text that are absolute or lead out of the current folder."""
    return [path for path in paths_in_text(text) if _LEAVES_WORKSPACE.fullmatch(path)]


def _paths_in_value(value: str, *, is_file_access: bool) -> Iterator[str]:
    stripped = value.strip()
    if "\n" in stripped:
        yield from (match.strip() for match in _PATCH_PATH.findall(value))
    elif _looks_like_path(stripped, is_file_access=is_file_access):
        yield stripped
    elif is_file_access and " " in stripped and not stripped.startswith(_COMMENTS):
        yield from outside_paths_in_text(stripped)


def _looks_like_path(value: str, *, is_file_access: bool) -> bool:
    if len(value) > MAX_LENGTH or value.startswith(_COMMENTS):
        return False
    return bool(_LEAVES_WORKSPACE.fullmatch(value) or (is_file_access and _RELATIVE.fullmatch(value)))


def clean_path(path: str) -> str:
    """Return a path without quotes and `file:` scheme, and with variables replaced, as an agent may read it."""
    path = path.strip()
    if len(path) > 1 and path[0] == path[-1] and path[0] in "'\"`":
        path = path[1:-1]
    if path[:5].lower() == "file:":
        path = _path_of_uri(path)
    return os.path.expandvars(path) if "$" in path else path


def _path_of_uri(uri: str) -> str:
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(uri)
    except ValueError:
        return "/"  # it cannot be read, so it is treated as outside
    host = "" if parts.netloc in ("", "localhost") else f"//{parts.netloc}"
    return unquote(f"{host}{parts.path}")
