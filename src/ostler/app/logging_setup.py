"""Starts the log of this process, once, with a file of its own for each session."""

import logging
import os
from collections.abc import Callable
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
    """What logs a session into its own folder and into the one log; `known` are secrets that only a flag tells."""
    handler = _get_handler(settings, extra_secrets)
    most = settings.config.logs.max_mb * MB
    handler.add_session_file(session_id, LogFile(folder / SESSION_LOG_NAME, most, 1))
    return SessionLog(session_id, lambda: handler.remove_session_file(session_id))


def _get_handler(settings: Settings, extra_secrets: tuple[str, ...]) -> LogHandler:
    logger = logging.getLogger("ostler")
    for handler in logger.handlers:
        if isinstance(handler, LogHandler):
            return handler
    logs = settings.config.logs
    folder = require_home(os.environ) / expand_path(logs.path or "logs", os.environ)
    with suppress(OSError):  # a log that cannot be written must not stop anybody
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = LogHandler(
        LogFile(folder / LOG_NAME, logs.max_mb * MB, logs.keep), lambda: _make_redact(settings, extra_secrets)
    )
    logger.setLevel(logs.level.upper())
    logger.addHandler(made)
    return made


def _make_redact(settings: Settings, extra_secrets: tuple[str, ...]) -> Callable[[str], str]:
    from ostler.app.redaction import make_redactor

    return make_redactor(settings, os.environ, *extra_secrets).redact
