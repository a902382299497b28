"""Paths that a file pattern or a recursive search can reach: secrets by name, and links in the file system."""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from ostler.policy.shell.expanded_words import ExpandedWord
from ostler.policy.shell.program_table import group
from ostler.policy.shell.shell_state import ShellState, home_folder

MAX_ENTRIES = 20000  # in folders that are searched for links

_FOLLOWS_LINKS = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep"), re.compile(r"-[A-Za-z]*R[A-Za-z]*|--dereference-rec.*")),
    **dict.fromkeys(("rg", "fd", "find", "du", "tree"), re.compile(r"-[A-Za-z]*[Ll][A-Za-z]*|--follow|--dereference")),
    "ls": re.compile(r"-[A-Za-z]*L[A-Za-z]*|--dereference"),
}


def matches_secret(pattern: str, shell: ShellState) -> bool:
    """Return whether a file pattern can match the name of a secret file."""
    paths = shell.resolve_paths(pattern)
    return any(
        _matches_tail(path.split("/"), _sample_parts(sample))
        for path in (*paths, *map(_behind_links, paths))
        for sample in group("secret-paths")
    )


def real_path(path: str) -> str:
    """Return a path with its links resolved, or the path itself if no file can have that name."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _behind_links(pattern: str) -> str:
    """Return an absolute pattern with the links in its leading folders resolved."""
    parts = pattern.split("/")
    count = next((index for index, part in enumerate(parts) if set("*?[") & set(part)), len(parts))
    folder = real_path("/".join(parts[:count]) or "/")
    return "/".join([folder.rstrip("/"), *parts[count:]])


def _sample_parts(sample: str) -> list[str]:
    """Return the last components of a secret's path; a file directly in the home folder needs all of them."""
    return (sample if "/" in sample else f"{home_folder()}/{sample}").lstrip("/").split("/")


def _matches_tail(pattern: list[str], sample: list[str]) -> bool:
    if "**" in pattern:
        return _matches_name(pattern[-1], sample[-1])
    tail = pattern[-len(sample) :]
    return len(tail) == len(sample) and all(map(_matches_name, tail, sample))


def _matches_name(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a file name; a leading dot must be in the pattern."""
    return fnmatchcase(name, pattern.replace("[^", "[!")) and (name[0] != "." or pattern[:1] in {".", "["})


def file_patterns(argv: Sequence[ExpandedWord], shell: ShellState) -> Iterator[str]:
    """Yield the absolute patterns among the arguments, and `folder/**` for a search that follows links."""
    for arg in argv[1:]:
        if arg.is_glob and arg.literal and not arg.text.startswith("-"):
            yield from shell.resolve_paths(arg.text)
    option = _FOLLOWS_LINKS.get(argv[0].text.rpartition("/")[2])
    if option and any(option.fullmatch(arg.text) for arg in argv[1:]):
        folders = [arg.text for arg in argv[1:] if arg.exact and not arg.text.startswith("-")]
        for folder in dict.fromkeys((*folders, ".")):
            yield from (f"{path}/**" for path in shell.resolve_paths(folder))


def links_below(pattern: str) -> Iterator[str]:
    """Yield the links that a pattern matches. Raises `OverflowError` if there are too many entries."""
    from glob import iglob

    recursive = pattern.endswith("/**")
    paths = _walk(pattern[:-3]) if recursive else iglob(pattern)
    for count, path in enumerate(paths):
        if count > MAX_ENTRIES:
            raise OverflowError(pattern)
        if os.path.islink(path):
            yield path


def _walk(folder: str) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (os.path.join(parent, name) for name in (*folders, *files))
