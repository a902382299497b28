"""Reads a config file safely: it must be a regular file of limited size in UTF-8."""

import os
import stat
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.settings.home import error_text
from ostler.settings.jsonc_parser import JsoncDocument, JsoncSyntaxError, decode_text
from ostler.settings.problems import Problem

MAX_BYTES = 1024 * 1024


class ConfigFileError(UsageError):
    """Raised for a config file that cannot be used; `problem` describes the same as a value."""

    def __init__(self, path: Path, message: str, line: int = 0, column: int = 0) -> None:
        self.problem = Problem(str(path), line, column, "", message)
        super().__init__(str(self.problem), code="config")


def read_config(path: Path) -> JsoncDocument | None:
    """Parse the config file at a path. Return None if it does not exist; raises `ConfigFileError`."""
    data = read_bytes(path)
    if data is None:
        return None
    try:
        return JsoncDocument(str(path), decode_text(data))
    except JsoncSyntaxError as error:
        raise ConfigFileError(path, error.message, *error.position) from None


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes | None:
    """Read a regular file. Return None if it does not exist; raises `ConfigFileError`, also for a pipe or a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise ConfigFileError(path, f"this file cannot be read: {error_text(error)}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        is_missing = _is_placeholder(descriptor)
        os.close(descriptor)
        if is_missing:
            return None
        raise ConfigFileError(path, "this is not a regular file; remove it")
    with open(descriptor, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ConfigFileError(path, f"this file is larger than {limit} bytes; shorten it")
    return data


def _is_placeholder(descriptor: int) -> bool:
    """Return whether this is an empty folder with the sticky bit: with it a sandbox locks a file that does not exist.

    It is there while another session works in the same folder, or if one was killed.
    """
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX) and not os.listdir(descriptor)
