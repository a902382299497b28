"""Validates, escapes and resolves path strings without opening them."""

import os
import re
import stat

from ostler.core.errors import PathError
from ostler.text.lazy_regex import lazy_regex

MAX_PATH = 4095
MAX_NAME = 255


def check_path(path: str) -> str:
    """Return the path. Raises `PathError` if it cannot be a valid path."""
    if not path or path.isspace():
        raise PathError("bad_path", repr(path), "the path is empty", hint="name a file relative to the workspace")
    if "\0" in path:
        raise PathError("bad_path", printable_path(path), "a path cannot contain a NUL character")
    if path[0] == "~":
        hint = f"write the full path, or ./{path} for a file with exactly that name"
        raise PathError("bad_path", printable_path(path), "~ is not expanded here", hint=hint)
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise PathError("bad_path", printable_path(path), "the path contains a lone surrogate") from None
    raw = "/".join(map(_unescape_name, path.split("/"))).encode("utf-8", "surrogateescape")
    if len(raw) > MAX_PATH or any(len(part) > MAX_NAME for part in raw.split(b"/")):
        reason = f"the path is too long ({len(raw)} bytes; the limit is {MAX_PATH}, and {MAX_NAME} for a name)"
        raise PathError("bad_path", printable_path(path), reason)
    return path


def name_existing_tilde(path: str, root: str) -> str:
    """Return `./~name` for a path that begins with the name of a file in the root, as listings show it."""
    first = path.split("/", 1)[0]
    if not first.startswith("~") or "\0" in first:
        return path
    names = {first, _unescape_name(first)}
    return f"./{path}" if any(_is_name_in(name, root) for name in names) else path


def _is_name_in(name: str, root: str) -> bool:
    try:
        return os.path.lexists(f"{root}/{name}")
    except (OSError, UnicodeEncodeError):
        return False


_ESCAPE_PATTERN = lazy_regex(r"\\(?:[\\nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\"}
_UNESCAPES = {short: char for char, short in _ESCAPES.items()}


def escape_path(path: str) -> str:
    """Return any path as one printable line; `unescape_path` reverses it.

    A byte that is not valid UTF-8 becomes `\\xff`. Backslashes are doubled only in names that would be ambiguous.
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
    """Return the path that an escaped path refers to. A name is unescaped only if the unescaped name exists."""
    if "\\" not in path:
        return path
    current, names = "" if path.startswith("/") else f"{root}/", []
    for name in path.split("/"):
        plain = _unescape_name(name)
        names.append(plain if plain != name and os.path.lexists(f"{current}{plain}") else name)
        current += f"{names[-1]}/"
    return "/".join(names)


def _unescape_name(name: str) -> str:
    plain = _ESCAPE_PATTERN.sub(_unescape_match, name)
    return plain.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") if plain != name else name


def _unescape_match(match: re.Match[str]) -> str:
    """Return the character for an escape that `escape_path` can produce; others stay unchanged."""
    escape = match.group()
    if escape in _UNESCAPES:
        return _UNESCAPES[escape]
    code = int(escape[2:], 16)
    if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return escape
    char = chr(code + 0xDC00) if escape[1] == "x" and code >= 0x80 else chr(code)
    return char if _escape_char(char) == escape else escape


def printable_path(path: str) -> str:
    """Return a path as one printable line, shortened to 200 characters."""
    text = path if path.isprintable() else escape_path(path)
    return text if len(path) <= 200 else f"{text[:200]}…"


def relative_to_root(path: str, roots: tuple[str, ...]) -> str | None:
    """Return a path relative to the root ("." for the root itself), or None if it is absolute and outside.

    `..` is not resolved here, because its meaning depends on the symlinks before it.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    as_directory = "/" if parts and path.endswith(("/", "/.")) else ""
    if not path.startswith("/"):
        return ("/".join(parts) or ".") + as_directory
    for root in roots:
        root_parts = [part for part in root.split("/") if part]
        if parts[: len(root_parts)] == root_parts:
            inside = "/".join(parts[len(root_parts) :])
            return inside + as_directory if inside else "."
    return None


def split_path(relative: str) -> tuple[str, str]:
    """Split a path into its directory and its last name; the name is empty if the path can only be a directory."""
    head, _, name = relative.rpartition("/")
    if name in ("", ".", ".."):
        return relative, ""
    return head or ".", name


_MAX_ATTEMPTS = 8


def resolve_path(path: str, root: str) -> str:
    """Return a path with all symlinks resolved, as far as it exists; for display, not for opening.

    The root contains no symlinks, so usually only the path's own names have to be checked.
    """
    inside = relative_to_root(path, (root,))
    if inside is not None and ".." not in inside:
        current = root.rstrip("/")
        for name in inside.rstrip("/").split("/"):
            current = current if name == "." else f"{current}/{name}"
            if _is_link(current):
                break
        else:
            return current or "/"
    absolute = path if path.startswith("/") else f"{root}/{path}"
    for _ in range(_MAX_ATTEMPTS):
        try:
            return os.path.realpath(absolute)
        except OSError:
            continue  # a symlink was replaced while it was resolved
    raise PathError("io_error", path, "it keeps changing while it is resolved")


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False
