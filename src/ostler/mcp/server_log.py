"""The log with the error output of a server."""

import os
from pathlib import Path

from ostler.mcp.server_entry import ServerEntry
from ostler.mcp.tool_names import server_prefixes
from ostler.settings.home import require_home
from ostler.text.secret_masker import MASK_MARKER

MAX_LOG_BYTES = 1024 * 1024


def log_file(name: str) -> Path:
    """Return the file with a server's error output."""
    return require_home(os.environ) / "logs" / "mcp" / f"{server_prefixes([name])[name]}.log"


class ServerLog:
    """Writes the error output of one start to the server's log, up to a limit and without the secrets it was given."""

    def __init__(self, entry: ServerEntry) -> None:
        self._path = log_file(entry.name)
        self._secrets = [secret.encode() for secret in entry.secrets if len(secret) >= 8]
        self._left = MAX_LOG_BYTES
        self._started = False

    def write(self, data: bytes) -> None:
        if self._left <= 0:
            return
        from ostler.journal.log_file import LogFile

        for secret in self._secrets:
            data = data.replace(secret, MASK_MARKER.encode())
        if not self._started:
            self._started = True
            data = f"--- started by process {os.getpid()}\n".encode() + data
        self._left -= len(data)
        if self._left <= 0:
            data += b"\n[more output is not logged]\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            LogFile(self._path, MAX_LOG_BYTES, 1).append(data)
        except OSError:
            self._left = 0  # a failing log must not stop the server
