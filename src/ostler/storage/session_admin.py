"""Implements `ostler sessions`: list, show, search, export, import, fork, rename, repair, delete, statistics."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Self

from ostler.core.errors import UsageError
from ostler.core.events import Envelope, PrefixBuilt, SessionOpened
from ostler.core.session_view import Records
from ostler.journal.active_records import ActiveRecords
from ostler.journal.conversation import ConversationMessage, read_conversation
from ostler.journal.file_journal import read_journal
from ostler.journal.journal_store import StoredSession
from ostler.journal.session_index import IndexedSession, SearchHit, SessionIndex, UsageRow
from ostler.journal.session_meta import MetaFile, SessionMeta
from ostler.knowledge.trusted_settings import load_settings_leniently
from ostler.settings.home import ensure_home, project_id
from ostler.settings.project_paths import workspace_path
from ostler.storage.session_stores import session_index, session_store

EXPORT_FORMATS = {".md": "markdown", ".html": "html", ".htm": "html", ".json": "json"}


class SessionAdmin:
    """The operations of `ostler sessions` on the stored sessions of a workspace, or of all."""

    def __init__(self, cwd: str, *, all_workspaces: bool, notify: Callable[[str], None]) -> None:
        self._cwd = workspace_path(cwd)
        self._project = project_id(self._cwd)
        self._scope = "" if all_workspaces else self._project
        self._settings = load_settings_leniently(self._cwd, notify)
        self._store = session_store(self._settings)
        self._notify = notify
        self._open_indexes: list[SessionIndex] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for index in self._open_indexes:
            index.close()

    @cached_property
    def _index(self) -> SessionIndex:
        self._open_indexes.append(session_index(self._settings, self._notify))
        return self._open_indexes[-1]

    def list(self, limit: int) -> Sequence[IndexedSession]:
        return self._index.sessions(self._scope, limit)

    def search(self, query: str, limit: int) -> Sequence[SearchHit]:
        return self._index.search(query, self._scope, limit)

    def stats(self) -> tuple[Sequence[IndexedSession], Sequence[UsageRow]]:
        """Return all sessions, with children, and the usage by model and day."""
        return self._index.sessions(self._scope, sys.maxsize, children=True), self._index.usage(self._scope)

    def conversation(self, session_ref: str) -> tuple[SessionMeta, Iterator[ConversationMessage]]:
        meta, records = self._read_session(session_ref)
        return meta, _messages(ActiveRecords(records))

    def export(
        self,
        session_ref: str,
        kind: str | None,
        output: str | None,
        *,
        redact: bool,
        opened: Records | None = None,
    ) -> Iterator[bytes]:
        """Yield or write a session. `opened` has its records if it is open: they may have texts that are not stored."""
        kind = kind or EXPORT_FORMATS.get(Path(output or "").suffix.lower(), "markdown")
        chunks = self._export_chunks(session_ref, kind, redact, opened)
        if not output:
            yield from chunks
            return
        try:
            with open(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.writelines(chunks)
        except FileExistsError:
            raise UsageError(f"{output} already exists", hint="choose another name, or remove the file") from None
        except OSError as error:
            raise UsageError(f"cannot write {output}: {error.strerror}") from None

    def _export_chunks(self, session_ref: str, kind: str, redact: bool, opened: Records | None) -> Iterable[bytes]:
        from ostler.journal.export_html import to_html
        from ostler.journal.export_json import to_json
        from ostler.journal.export_markdown import to_markdown
        from ostler.storage.redaction import make_record_redactor

        meta, records = self._read_session(session_ref)
        if opened is not None:
            meta, records = SessionMeta(meta.id), opened
            for envelope in records:
                meta.apply(envelope)
        redactor = make_record_redactor(self._settings, os.environ, enabled=redact)
        if kind == "json":
            return to_json(meta, records, redactor.redact_tree)
        convert = to_html if kind == "html" else to_markdown
        return (
            text.encode("utf-8", "replace")
            for text in convert(meta, _messages(ActiveRecords(records)), redactor.redact_text)
        )

    def import_file(self, file: str, version: str) -> str:
        from ostler.journal.export_json import from_json

        try:
            data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from None
        ensure_home(os.environ)
        opened = SessionOpened("", str(self._cwd), "engine", version)
        session, skipped = from_json(data, self._store, self._project, opened)
        if skipped:
            self._notify(
                f"{skipped} records were not imported: permission rules, settings and system prompts are never imported"
            )
        return f"{session.id}\n"

    def find(self, session_ref: str) -> str:
        return self._find(session_ref).id

    def has_session(self, session_id: str) -> bool:
        """Return whether the workspace has a session with exactly this id."""
        return self._store.find_exact(session_id, self._project) is not None

    def fork(self, session_ref: str, seq: int) -> str:
        from ostler.journal.fork import fork

        return fork(self._store, self._find(session_ref), seq).id

    def rename(self, session_ref: str, title: str) -> None:
        from ostler.session.offline import rename

        with closing(self._store.open(self._find(session_ref))) as journal:
            rename(journal, title)

    def delete(self, session_refs: Sequence[str]) -> Sequence[str]:
        sessions = [self._find(session_ref) for session_ref in session_refs]
        for session in sessions:
            self._store.delete(session)
        self._index.purge()
        return [session.id for session in sessions]

    def repair(self, session_ref: str) -> Sequence[str]:
        from ostler.session.offline import repair_journal

        with closing(self._store.open(self._find(session_ref))) as journal:
            return repair_journal(journal) or ["no damage found; nothing to repair"]

    def _find(self, session_ref: str) -> StoredSession:
        return self._store.find(session_ref, self._project)

    def _read_session(self, session_ref: str) -> tuple[SessionMeta, Records]:
        session = self._find(session_ref)
        try:
            records = read_journal(session.journal_path)
        except OSError as error:
            raise UsageError(f"cannot read session {session.id}: {error.strerror}") from None
        for message in records.damage.describe(session.id):
            self._notify(message)
        meta = MetaFile(session.folder, session.id)
        meta.catch_up(records)
        return meta.meta, records


def _messages(records: Iterable[Envelope]) -> Iterator[ConversationMessage]:
    return read_conversation(envelope for envelope in records if not isinstance(envelope.event, PrefixBuilt))
