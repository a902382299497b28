"""A Unix socket for clients of the same user: only its owner can open it, and the peer's uid stands for a token."""

import os
import socket
import stat
import struct
from contextlib import suppress
from pathlib import Path

from ostler.core.errors import UsageError

PEER_UID = "ostler.peer_uid"  # key of an ASGI scope; no header can set it
_LOCAL_PEERCRED = 1  # of macOS and BSD, at level 0
_PRIVATE_UMASK = 0o177


def listen_unix(path: Path) -> socket.socket:
    """Return a listening socket with mode 0600. A socket that nobody listens on is replaced. Raises `UsageError`."""
    _check_folder(path)
    _remove_unused(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    previous = os.umask(_PRIVATE_UMASK)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {path}: {error.strerror or error}") from None
    finally:
        os.umask(previous)
    listener.listen(128)
    listener.setblocking(False)
    return listener


def close_unix(listener: socket.socket, path: Path) -> None:
    """Close the socket and remove its file, unless another process has replaced it."""
    listener.close()
    with suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode) and not _is_used(path):
            path.unlink()


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user id of the process at the other end of a Unix socket, or None if it is unknown."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", data)[1])
        data = connection.getsockopt(0, _LOCAL_PEERCRED, 76)
        return int(struct.unpack_from("2I", data)[1])
    except (OSError, AttributeError, struct.error):
        return None


def _check_folder(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.parent.stat()
    except OSError as error:
        raise UsageError(f"{path.parent} cannot be used for a socket: {error.strerror}") from None
    can_replace = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    if can_replace or found.st_uid not in (0, os.geteuid()):
        raise UsageError(f"other users could replace {path}", hint="use a folder that only you can write")


def _remove_unused(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"cannot listen on {path}: {error.strerror}") from None
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise UsageError(f"{path} exists and is not a socket of yours", hint="choose another path")
    if _is_used(path):
        raise UsageError(f"another server listens on {path}", hint="stop it, or choose another path")
    with suppress(FileNotFoundError):
        path.unlink()


def _is_used(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # for example a full queue
        return True
