"""Whether the sessions that a process has open work or wait for the user, read from the ends of their journals."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from ostler.journal.lock import is_locked
from ostler.journal.session_meta import read_meta
from ostler.settings.effective import Settings
from ostler.settings.home import project_id
from ostler.storage.session_stores import session_store

TAIL_BYTES = 256 * 1024
OpenState = Literal["waiting", "working", "done"]
_ASKED = ("permission_asked", "question_asked")
_ANSWERED = ("permission_decided", "question_answered")


class _Event(msgspec.Struct):
    type: str = ""


class _Line(msgspec.Struct):
    event: _Event


def open_session_states(settings: Settings, session_ids: Iterable[str]) -> Mapping[str, OpenState]:
    """Return the state of those sessions that a process has open."""
    wanted = set(session_ids)
    return {
        session.id: journal_state(session.journal_path)
        for session in session_store(settings).sessions()
        if session.id in wanted and is_locked(session.folder)
    }


def has_open_session(settings: Settings, folder: Path) -> bool:
    """Return whether a process has a session open in a folder or below it."""
    folder = folder.resolve()
    for session in session_store(settings).sessions():
        if is_locked(session.folder):
            meta = read_meta(session.folder, session.id)
            if session.project == project_id(folder) or (meta and folder in (Path(meta.cwd), *Path(meta.cwd).parents)):
                return True
    return False


def journal_state(path: Path) -> OpenState:
    """Return the state of an open session, by the last records of its journal."""
    is_working, asked = False, 0
    for kind in _last_types(path):
        if kind in ("turn_started", "tool_called", "message_done"):
            is_working = True
        elif kind in ("turn_ended", "session_opened"):
            is_working, asked = False, 0
        asked = max(asked + (kind in _ASKED) - (kind in _ANSWERED), 0)
    return "waiting" if asked else "working" if is_working else "done"


def _last_types(path: Path) -> Iterable[str]:
    try:
        with path.open("rb") as file:
            start = max(os.fstat(file.fileno()).st_size - TAIL_BYTES, 0)
            file.seek(start)
            lines = file.read().split(b"\n")[1 if start else 0 :]
    except OSError:
        return
    decoder = msgspec.json.Decoder(_Line)
    for line in lines:
        try:
            yield decoder.decode(line).event.type
        except msgspec.DecodeError:
            continue
