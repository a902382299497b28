"""Converts operating system errors to path errors with a hint for the model."""

import errno
import os

from ostler.core.errors import PathError, PathErrorCode
from ostler.workspace.paths import printable_path

_MESSAGES: dict[int, tuple[PathErrorCode, str]] = {
    errno.ENOENT: ("not_found", "no such file or directory"),
    errno.ENOTDIR: ("not_a_directory", "a part of the path is not a directory"),
    errno.EISDIR: ("not_a_file", "this is a directory"),
    errno.EEXIST: ("already_exists", "it already exists"),
    errno.ENOTEMPTY: ("already_exists", "the directory is not empty"),
    errno.ENXIO: ("not_a_file", "this is a socket, a pipe or a device"),
    errno.ENODEV: ("not_a_file", "this is a device"),
    errno.ENAMETOOLONG: ("bad_path", "the path is too long for this file system"),
    errno.EILSEQ: ("bad_path", "this file system does not support such a name"),
    errno.ELOOP: ("outside_workspace", "its symlinks form a loop, go through /proc or have just changed"),
    errno.EXDEV: ("outside_workspace", "it is outside the workspace"),
    errno.EACCES: ("denied_by_system", "the operating system does not allow this"),
    errno.EPERM: ("denied_by_system", "the operating system does not allow this"),
    errno.EROFS: ("denied_by_system", "the file system is read-only"),
    errno.ETXTBSY: ("denied_by_system", "this program is running"),
    errno.ENOSPC: ("io_error", "the disk is full; nothing was changed"),
    errno.EDQUOT: ("io_error", "the disk quota is used up; nothing was changed"),
    errno.EFBIG: ("io_error", "the file would be larger than this system allows; nothing was changed"),
}


def path_error(error: OSError, path: str) -> PathError:
    """Return the path error for an operating system error."""
    number = error.errno or 0
    code, reason = _MESSAGES.get(number, ("io_error", f"the operating system reports: {os.strerror(number)}"))
    return PathError(code, printable_path(path), reason)


def outside_error(path: str) -> PathError:
    """Return the error for a path outside the workspace."""
    return PathError(
        "outside_workspace",
        printable_path(path),
        "it is outside the workspace",
        hint="use a path inside the workspace, or ask the user to allow it",
    )
