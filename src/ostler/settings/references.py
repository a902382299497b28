"""`{env:NAME}` and `{file:path}` inside a setting, filled in when the setting is used."""

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
    """The text with its references replaced; nothing at all when it needs a variable that is not set.

    A file is looked for from `folder`; errors begin with `where`. Both cost a look at the config's text.
    """
    if unset_variables(text, env):
        return ""

    def replacement(found: re.Match[str]) -> str:
        kind, name = found[1], found[2].strip()
        return env[name] if kind == "env" else _read_reference(folder() / expand_path(name, env), location)

    filled = re.sub(_REFERENCE, replacement, text).strip()
    if not filled.isprintable():
        raise UsageError(f"{location()} has a line break or a control character in it; remove it")
    return filled


def unset_variables(text: str, env: Mapping[str, str]) -> list[str]:
    """The variables that a text needs and that are not set, or empty."""
    names = (name.strip() for kind, name in re.findall(_REFERENCE, text) if kind == "env")
    return [name for name in names if not env.get(name)]


def referenced_values(text: str, env: Mapping[str, str], folders: Iterable[Path]) -> Iterator[str]:
    """What each reference in a text stands for, as far as that can be told; a file may lie in any of the folders."""
    for kind, name in re.findall(_REFERENCE, text):
        if kind == "env":
            yield env.get(name.strip(), "")
            continue
        for folder in folders:
            with suppress(UsageError):
                yield _read_reference(folder / expand_path(name.strip(), env), str)


def _read_reference(path: Path, location: Callable[[], str]) -> str:
    data = read_bytes(path, _MAX_BYTES)
    if data is None:
        raise UsageError(f"{location()} refers to {path}, but there is no such file")
    try:
        return data.decode().strip()
    except UnicodeDecodeError:
        raise UsageError(f"{location()} refers to {path}, which is not UTF-8") from None
