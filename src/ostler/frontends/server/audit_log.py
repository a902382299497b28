"""The audit log: who did what at the server, as JSON lines without contents and without secrets."""

import logging
import time

import msgspec

from ostler.journal.log_file import LogFile
from ostler.journal.session_meta import format_time

_log = logging.getLogger("ostler.server.audit")
MAX_TEXT = 300


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line. `event` is request, refused, opened, closed, pairing.opened, paired, token.issued or token.revoked."""

    event: str
    user: str = ""
    token: str = ""  # its id
    client: str = ""
    method: str = ""
    path: str = ""
    status: int = 0
    reason: str = ""
    ms: int = 0
    unlogged: int = 0  # refused requests of this client since its last entry, which were too many to log


class AuditLog:
    """Appends entries to a rotated file that only its owner can read."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def write(self, entry: AuditEntry) -> None:
        """Append an entry. A failure is logged: a full disk must not lock out everybody."""
        fields = {"time": format_time(time.time()), **msgspec.to_builtins(entry)}
        shortened = {key: _clean(value) if isinstance(value, str) else value for key, value in fields.items()}
        try:
            self._file.append(msgspec.json.encode(shortened) + b"\n")
        except OSError as error:
            _log.error("the audit log cannot be written: %s", error)


def _clean(text: str) -> str:
    return text[:MAX_TEXT].encode("utf-8", "replace").decode()
