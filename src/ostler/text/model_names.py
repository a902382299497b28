"""Compares the name of a model with the names that a server lists."""

from collections.abc import Iterable

from ostler.text.lazy_regex import lazy_regex

# Endings that servers add to or accept after a name: a date or version, a tag such as `:latest`.
_ENDING = lazy_regex(r"[-@](?:\d{4,8}|\d{4}-\d\d-\d\d|\d\d-\d{4}|latest|preview|exp)|:[\w.-]+|@[\w.-]+")


def is_listed(name: str, listed: Iterable[str]) -> bool:
    """Return whether a server that lists these models probably accepts `name`: as listed, or with another ending."""
    return any(_is_same(name, entry.removeprefix("models/")) for entry in listed)


def _is_same(name: str, entry: str) -> bool:
    name = name.removeprefix("models/")
    longer, shorter = (entry, name) if len(entry) > len(name) else (name, entry)
    if not longer.casefold().startswith(shorter.casefold()):
        return False
    ending = longer[len(shorter) :]
    return not ending or bool(_ENDING.fullmatch(ending))
