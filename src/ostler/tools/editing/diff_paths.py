"""Parses file names in diff headers."""

import re

from ostler.tools.editing.patch_types import bad_patch_error
from ostler.workspace.paths import escape_path

DEV_NULL = "/dev/null"
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_QUOTED_PART = re.compile(r"\\([0-3][0-7]{2}|.)|([^\\]+)", re.DOTALL)
_TRAILING_INFO = re.compile(r" +(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\((?:revision \d|working copy|nonexistent)).*")


def header_name(rest: str, line: int) -> str:
    """Return the name after `--- ` or `+++ `, without a timestamp. Raises `ToolError`."""
    if rest.startswith('"'):
        match = _QUOTED.match(rest)
        if not match:
            raise bad_patch_error("a quoted file name has no closing quote", line)
        return _unquote(match.group(1), line)
    return _TRAILING_INFO.sub("", rest.partition("\t")[0]).strip()


def plain_name(rest: str, line: int) -> str:
    """Return the name in a header without other content, such as `rename from`."""
    return header_name(rest, line) if rest.startswith('"') else rest.strip()


def git_names(rest: str, line: int) -> tuple[str, str]:
    """Return the two names of a `diff --git` line; unquoted names with spaces are split if they are equal."""
    quoted = _QUOTED.findall(rest)
    if len(quoted) == 2:
        return _unquote(quoted[0], line), _unquote(quoted[1], line)
    middle = len(rest) // 2
    if (
        len(rest) % 2
        and rest[middle] == " "
        and rest[:middle].partition("/")[2] == rest[middle + 1 :].partition("/")[2]
    ):
        return rest[:middle], rest[middle + 1 :]
    old, _, new = rest.partition(" b/")
    if new:
        return old, f"b/{new}"
    old, _, new = rest.partition(" ")
    return old, new


def strip_prefixes(old: str, new: str) -> tuple[str, str]:
    """Remove prefixes such as `a/` and `b/` from both names."""
    if DEV_NULL in (old, new):
        return old.removeprefix("a/"), new.removeprefix("b/")
    (old_head, _, old_rest), (new_head, _, new_rest) = old.partition("/"), new.partition("/")
    if (old_head, new_head) == ("a", "b") and old_rest and new_rest:
        return old_rest, new_rest
    if old_head != new_head and old_rest == new_rest and old_rest:
        return old_rest, new_rest
    if old == f"a/{new}":
        return new, new
    return (old, old) if new == f"b/{old}" else (old, new)


def _unquote(quoted: str, line: int) -> str:
    data = bytearray()
    for escape, plain in _QUOTED_PART.findall(quoted):
        if plain:
            data += plain.encode()
        elif escape in _ESCAPES:
            data.append(_ESCAPES[escape])
        elif len(escape) == 3:
            data.append(int(escape, 8))
        else:
            raise bad_patch_error(f"a quoted file name contains the unknown escape \\{escape}", line)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return escape_path(data.decode("utf-8", "surrogateescape"))
