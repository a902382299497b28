"""What a path says before anything is touched: whether it can be a path at all, and how it reads from the root."""

import os
import stat

from ostler.vocabulary.errors import PathRefused

MAX_PATH = 4095
MAX_NAME = 255


def check(path: str) -> str:
    """The path itself, or a refusal when it cannot name a file on any ground."""
    if not path or path.isspace():
        raise PathRefused("bad_path", repr(path), "the path is empty", hint="name a file relative to the workspace")
    if "\0" in path:
        raise PathRefused("bad_path", readable(path), "a path cannot hold a NUL character")
    if path[0] == "~":
        hint = f"write the path out in full, or ./{path} for a file of that very name"
        raise PathRefused("bad_path", readable(path), "~ is not expanded here", hint=hint)
    try:
        raw = path.encode("utf-8")
    except UnicodeEncodeError:
        raise PathRefused("bad_path", readable(path), "the path holds half a character (a lone surrogate)") from None
    if len(raw) > MAX_PATH or any(len(part) > MAX_NAME for part in raw.split(b"/")):
        reason = f"the path is too long ({len(raw)} bytes; {MAX_PATH} in all and {MAX_NAME} in a name are possible)"
        raise PathRefused("bad_path", readable(path), reason)
    return path


def escaped(path: str) -> str:
    """A path that may be anything, as one line that can be shown and stored."""
    return path if path.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in path)


def readable(path: str) -> str:
    """The same, and short."""
    return escaped(path) if len(path) <= 200 else f"{escaped(path[:200])}…"


def beneath(path: str, roots: tuple[str, ...]) -> str | None:
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


def split(relative: str) -> tuple[str, str]:
    """A path as its directory and its last name; the name is empty when the path can only mean a directory."""
    head, _, name = relative.rpartition("/")
    if name in ("", ".", ".."):
        return relative, ""
    return head or ".", name


_TRIES = 8


def resolved(path: str, root: str) -> str:
    """Where a path leads once every link is followed, as far as it exists; for showing, never for opening.

    The root has no links in it, so most paths are settled by a look at each of their own names.
    """
    inside = beneath(path, (root,))
    if inside is not None and ".." not in inside:
        here = root.rstrip("/")
        for name in inside.rstrip("/").split("/"):
            here = here if name == "." else f"{here}/{name}"
            if _is_link(here):
                break
        else:
            return here or "/"
    whole = path if path.startswith("/") else f"{root}/{path}"
    for _ in range(_TRIES):
        try:
            return os.path.realpath(whole)
        except OSError:
            continue  # a link became something else between the look at it and its reading
    raise PathRefused("io_error", path, "it keeps changing while it is looked at")


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False
