"""Starts logging for this process: with one extra file per session, or to the file of a server."""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ostler.journal.log_file import LogFile, LogHandler
from ostler.journal.session_log import SessionLog
from ostler.settings.effective import Settings
from ostler.settings.home import expand_path, require_home

LOG_NAME = "ostler.log"
SESSION_LOG_NAME = "log"
MB = 1024 * 1024


def make_session_log(settings: Settings, session_id: str, folder: Path, *extra_secrets: str) -> SessionLog:
    """Return a log that writes to the session's folder and to the common file; `extra_secrets` are masked too."""
    handler = _get_handler(settings, extra_secrets)
    max_bytes = settings.config.logs.max_mb * MB
    handler.add_session_file(session_id, LogFile(folder / SESSION_LOG_NAME, max_bytes, 1))
    return SessionLog(session_id, lambda: handler.remove_session_file(session_id))


def _get_handler(settings: Settings, extra_secrets: tuple[str, ...]) -> LogHandler:
    logger = logging.getLogger("ostler")
    for handler in logger.handlers:
        if isinstance(handler, LogHandler):
            return handler
    logs = settings.config.logs
    folder = require_home(os.environ) / expand_path(logs.path or "logs", os.environ)
    with suppress(OSError):  # a failing log must not stop the session
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handler = LogHandler(
        LogFile(folder / LOG_NAME, logs.max_mb * MB, logs.keep), lambda: _make_redact(settings, extra_secrets)
    )
    logger.setLevel(logs.level.upper())
    logger.addHandler(handler)
    return handler


def add_log_file(settings: Settings, file: Path, loggers: Sequence[str], *extra_secrets: str) -> Callable[[], None]:
    """Write what these loggers log to a file, with secrets masked. Return a function that ends this."""
    logs = settings.config.logs
    handler = LogHandler(LogFile(file, logs.max_mb * MB, logs.keep), lambda: _make_redact(settings, extra_secrets))
    for name in loggers:
        logging.getLogger(name).setLevel(logs.level.upper())
        logging.getLogger(name).addHandler(handler)

    def end() -> None:
        for name in loggers:
            logging.getLogger(name).removeHandler(handler)
        handler.close()

    return end


def _make_redact(settings: Settings, extra_secrets: tuple[str, ...]) -> Callable[[str], str]:
    from ostler.storage.redaction import make_redactor

    return make_redactor(settings, os.environ, *extra_secrets).redact
