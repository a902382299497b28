"""The desk where a person looks after sessions that are not being played."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec

from ostler import __version__
from ostler.app import desk_text
from ostler.app.folders import workspace
from ostler.app.sessions import session_index, session_store
from ostler.app.trusting import settings_for_looking
from ostler.journal.counting import Counting
from ostler.journal.file import read_past
from ostler.journal.index import Index
from ostler.journal.meta import Meta, MetaFile
from ostler.journal.said import Said, conversation
from ostler.journal.store import Place
from ostler.settings.home import ensure_home, project_id
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import Envelope, PrefixBuilt, SessionOpened
from ostler.vocabulary.seams import Past

ENDINGS = {".md": "markdown", ".html": "html", ".htm": "html", ".json": "json"}


class Desk:
    """All of `ostler sessions`: what it returns is to be printed."""

    def __init__(self, cwd: str, *, everywhere: bool, say: Callable[[str], None]) -> None:
        self._cwd = workspace(cwd)
        self._project = project_id(self._cwd)
        self._scope = "" if everywhere else self._project
        self._settings = settings_for_looking(self._cwd, say)
        self._store = session_store(self._settings)
        self._say = say
        self._opened: list[Index] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for index in self._opened:
            index.close()

    @cached_property
    def _index(self) -> Index:
        self._opened.append(session_index(self._settings, self._say))
        return self._opened[-1]

    def list(self, limit: int, *, as_json: bool) -> str:
        found = self._index.sessions(self._scope, limit)
        if as_json:
            return _json([{**msgspec.to_builtins(one.meta), "bytes": one.size} for one in found])
        return desk_text.listed(found, with_folder=not self._scope)

    def search(self, words: str, limit: int, *, as_json: bool) -> str:
        hits = self._index.search(words, self._scope, limit)
        if as_json:
            return _json([desk_text.hit_fields(hit) for hit in hits])
        return desk_text.found(hits, sys.stdout)

    def stats(self, limit: int, *, as_json: bool) -> str:
        spent = self._index.spent(self._scope)
        sessions = self._index.sessions(self._scope, sys.maxsize, children=True)
        if as_json:
            totals = {"sessions": len(sessions), "turns": sum(one.meta.turns for one in sessions)}
            return _json({**totals, "bytes": sum(one.size for one in sessions), "usage": msgspec.to_builtins(spent)})
        return desk_text.stats(sessions, spent, limit)

    def show(self, wanted: str, *, full: bool, as_json: bool) -> str:
        meta, past = self._read(wanted)
        said = _said(Counting(past))
        if as_json:
            return _json({"session": msgspec.to_builtins(meta), "messages": msgspec.to_builtins(list(said))})
        return desk_text.shown(meta, said, full=full)

    def export(self, wanted: str, kind: str | None, output: str | None, *, redact: bool) -> Iterator[bytes]:
        kind = kind or ENDINGS.get(Path(output or "").suffix.lower(), "markdown")
        pieces = self._exported(wanted, kind, redact)
        if not output:
            yield from pieces
            return
        try:
            with open(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.writelines(pieces)
        except FileExistsError:
            raise UsageError(f"{output} is there already", hint="choose another name, or remove it first") from None
        except OSError as error:
            raise UsageError(f"{output} cannot be written: {error.strerror}") from None

    def _exported(self, wanted: str, kind: str, redact: bool) -> Iterable[bytes]:
        from ostler.app.redaction import make_cleaner
        from ostler.journal.export_html import to_html
        from ostler.journal.export_json import to_json
        from ostler.journal.export_markdown import to_markdown

        meta, past = self._read(wanted)
        clean = make_cleaner(self._settings, os.environ, on=redact)
        if kind == "json":
            return to_json(meta, past, clean.tree)
        make = to_html if kind == "html" else to_markdown
        return (piece.encode("utf-8", "replace") for piece in make(meta, _said(Counting(past)), clean.text))

    def bring_in(self, file: str) -> str:
        from ostler.journal.export_json import from_json

        try:
            data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error.strerror}") from None
        ensure_home(os.environ)
        opened = SessionOpened("", str(self._cwd), "engine", __version__)
        place, left = from_json(data, self._store, self._project, opened)
        if left:
            self._say(f"{left} records were left behind: rules, settings and prompts are not taken from elsewhere")
        return f"{place.id}\n"

    def find(self, wanted: str) -> str:
        return self._find(wanted).id

    def fork(self, wanted: str, at: int) -> str:
        from ostler.journal.fork import fork

        return fork(self._store, self._find(wanted), at).id

    def rename(self, wanted: str, title: str) -> None:
        from ostler.session.mending import rename

        journal = self._store.open(self._find(wanted))
        try:
            rename(journal, title)
        finally:
            journal.close()

    def delete(self, wanted: Sequence[str]) -> Sequence[str]:
        places = [self._find(name) for name in wanted]
        for place in places:
            self._store.delete(place)
        self._index.purge()
        return [place.id for place in places]

    def repair(self, wanted: str) -> Sequence[str]:
        from ostler.session.mending import mend

        journal = self._store.open(self._find(wanted))
        try:
            return mend(journal) or ["nothing is damaged, nothing was left open"]
        finally:
            journal.close()

    def _find(self, wanted: str) -> Place:
        return self._store.find(wanted, self._project)

    def _read(self, wanted: str) -> tuple[Meta, Past]:
        place = self._find(wanted)
        try:
            past = read_past(place.journal)
        except OSError as error:
            raise UsageError(f"session {place.id} cannot be read: {error.strerror}") from None
        for told in past.damage.told(place.id):
            self._say(told)
        meta = MetaFile(place.folder, place.id)
        meta.catch_up(past)
        return meta.meta, past


def _said(records: Iterable[Envelope]) -> Iterator[Said]:
    return conversation(envelope for envelope in records if not isinstance(envelope.event, PrefixBuilt))


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
