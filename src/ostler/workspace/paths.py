"""What a path says before anything is touched: whether it can be a path at all, and how it reads from the root."""

import os
import re
import stat

from ostler.core.errors import PathError
from ostler.text.lazy_regex import lazy_regex

MAX_PATH = 4095
MAX_NAME = 255


def check_path(path: str) -> str:
    """The path itself, or a refusal when it cannot name a file on any ground."""
    if not path or path.isspace():
        raise PathError("bad_path", repr(path), "the path is empty", hint="name a file relative to the workspace")
    if "\0" in path:
        raise PathError("bad_path", printable_path(path), "a path cannot hold a NUL character")
    if path[0] == "~":
        hint = f"write the path out in full, or ./{path} for a file of that very name"
        raise PathError("bad_path", printable_path(path), "~ is not expanded here", hint=hint)
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise PathError(
            "bad_path", printable_path(path), "the path holds half a character (a lone surrogate)"
        ) from None
    raw = "/".join(map(_unescape_name, path.split("/"))).encode("utf-8", "surrogateescape")
    if len(raw) > MAX_PATH or any(len(part) > MAX_NAME for part in raw.split(b"/")):
        reason = f"the path is too long ({len(raw)} bytes; {MAX_PATH} in all and {MAX_NAME} in a name are possible)"
        raise PathError("bad_path", printable_path(path), reason)
    return path


_ESCAPE_PATTERN = lazy_regex(r"\\(?:[\\nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\"}
_UNESCAPES = {short: char for char, short in _ESCAPES.items()}


def escape_path(path: str) -> str:
    """A path that may be anything, as one line that can be shown and stored; `meant` reads it back.

    A byte that is no UTF-8 is spelled `\\xff`; backslashes are doubled only in names that would else be ambiguous.
    """
    if path.isprintable() and "\\" not in path:
        return path
    return "/".join(name if _needs_no_escape(name) else "".join(map(_escape_char, name)) for name in path.split("/"))


def _needs_no_escape(name: str) -> bool:
    return name.isprintable() and _unescape_name(name) == name


def _escape_char(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80 or 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def unescape_path(path: str, root: str) -> str:
    """The path that a spelling stands for: of each name the escaped one if that is there, else the name as it is."""
    if "\\" not in path:
        return path
    here, names = "" if path.startswith("/") else f"{root}/", []
    for name in path.split("/"):
        plain = _unescape_name(name)
        names.append(plain if plain != name and os.path.lexists(f"{here}{plain}") else name)
        here += f"{names[-1]}/"
    return "/".join(names)


def _unescape_name(name: str) -> str:
    plain = _ESCAPE_PATTERN.sub(_unescape_match, name)
    return plain.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") if plain != name else name


def _unescape_match(found: re.Match[str]) -> str:
    """The character of an escape that `escaped` could have written; any other stays as it is."""
    escape = found.group()
    if escape in _UNESCAPES:
        return _UNESCAPES[escape]
    code = int(escape[2:], 16)
    if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return escape
    char = chr(code + 0xDC00) if escape[1] == "x" and code >= 0x80 else chr(code)
    return char if _escape_char(char) == escape else escape


def printable_path(path: str) -> str:
    """A path as somebody gave it, as one short line."""
    shown = path if path.isprintable() else escape_path(path)
    return shown if len(path) <= 200 else f"{shown[:200]}…"


def relative_to_root(path: str, roots: tuple[str, ...]) -> str | None:
    """How a path reads from the root ("." for the root itself); None when it is absolute and of another tree.

    `..` is left to whoever walks the path: what it means depends on the links before it.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    as_directory = "/" if parts and path.endswith(("/", "/.")) else ""
    if not path.startswith("/"):
        return ("/".join(parts) or ".") + as_directory
    for root in roots:
        above = [part for part in root.split("/") if part]
        if parts[: len(above)] == above:
            inside = "/".join(parts[len(above) :])
            return inside + as_directory if inside else "."
    return None


def split_path(relative: str) -> tuple[str, str]:
    """A path as its directory and its last name; the name is empty when the path can only mean a directory."""
    head, _, name = relative.rpartition("/")
    if name in ("", ".", ".."):
        return relative, ""
    return head or ".", name


_MAX_ATTEMPTS = 8


def resolve_path(path: str, root: str) -> str:
    """Where a path leads once every link is followed, as far as it exists; for showing, never for opening.

    The root has no links in it, so most paths are settled by a look at each of their own names.
    """
    inside = relative_to_root(path, (root,))
    if inside is not None and ".." not in inside:
        here = root.rstrip("/")
        for name in inside.rstrip("/").split("/"):
            here = here if name == "." else f"{here}/{name}"
            if _is_link(here):
                break
        else:
            return here or "/"
    whole = path if path.startswith("/") else f"{root}/{path}"
    for _ in range(_MAX_ATTEMPTS):
        try:
            return os.path.realpath(whole)
        except OSError:
            continue  # a link became something else between the look at it and its reading
    raise PathError("io_error", path, "it keeps changing while it is looked at")


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False
