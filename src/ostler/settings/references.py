"""Replaces `{env:NAME}`, `{env:NAME:-default}` and `{file:path}` in settings when a setting is used."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.settings.config_files import read_bytes
from ostler.settings.home import expand_path

_REFERENCE = r"\{(env|file):([^{}]+)\}"
_MAX_BYTES = 64 * 1024


def fill_references(text: str, env: Mapping[str, str], folder: Callable[[], Path], location: Callable[[], str]) -> str:
    """Replace the references in `text`. Return an empty string if a variable without a default is not set.

    Relative file paths start at `folder()`. Raises `UsageError`; its message starts with `location()`. Both are called
    only if needed, because they have to parse the config file for positions.
    """
    if unset_variables(text, env):
        return ""

    def replacement(match: re.Match[str]) -> str:
        kind, name = match[1], match[2].strip()
        return _variable(name, env) if kind == "env" else _read_reference(folder() / expand_path(name, env), location)

    filled = re.sub(_REFERENCE, replacement, text).strip()
    if not filled.isprintable():
        raise UsageError(f"{location()} contains a line break or a control character; remove it")
    return filled


def unset_variables(text: str, env: Mapping[str, str]) -> list[str]:
    """Return the referenced variables without a default that are not set or empty."""
    names = (name.strip() for kind, name in re.findall(_REFERENCE, text) if kind == "env")
    return [name for name in names if ":-" not in name and not env.get(name)]


def _variable(reference: str, env: Mapping[str, str]) -> str:
    """Return the value of `NAME` or `NAME:-default`; the default replaces a variable that is not set or empty."""
    name, _, default = reference.partition(":-")
    return env.get(name.strip()) or default


def referenced_values(text: str, env: Mapping[str, str], folders: Iterable[Path]) -> Iterator[str]:
    """Yield the values of the references in a text. Files are read from each folder; errors are ignored."""
    for kind, name in re.findall(_REFERENCE, text):
        if kind == "env":
            yield _variable(name.strip(), env)
            continue
        for folder in folders:
            with suppress(UsageError):
                yield _read_reference(folder / expand_path(name.strip(), env), str)


def _read_reference(path: Path, location: Callable[[], str]) -> str:
    data = read_bytes(path, _MAX_BYTES)
    if data is None:
        raise UsageError(f"{location()} refers to {path}, which does not exist")
    try:
        return data.decode().strip()
    except UnicodeDecodeError:
        raise UsageError(f"{location()} refers to {path}, which is not UTF-8") from None
