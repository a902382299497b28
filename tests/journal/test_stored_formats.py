"""The stored files of a session: written byte for byte as pinned, and read back."""

import pytest
from tests.stored_examples import STORED

from ostler.journal.file_journal import read_journal
from ostler.journal.journal_store import JournalStore

pytestmark = pytest.mark.req("SE-1")
SESSION = STORED / "session"
FILES = ("journal.jsonl", "meta.json", "todos.json", "history.xnl")


def written(folder):
    return {name: (folder / name).read_text("utf-8") for name in FILES if (folder / name).exists()}


def test_session_is_written_in_the_stored_form(tmp_path):
    store = JournalStore(tmp_path)
    session = store.session("p", "s1")
    journal = store.open(session)
    for envelope in read_journal(SESSION / "journal.jsonl"):
        journal.append(envelope)
    journal.close()
    assert written(session.folder) == written(SESSION)
    assert sorted(written(SESSION)) == sorted(FILES)


def test_derived_files_are_rebuilt_from_the_journal(tmp_path):
    store = JournalStore(tmp_path)
    session = store.session("p", "s1")
    session.folder.mkdir(parents=True)
    session.journal_path.write_bytes((SESSION / "journal.jsonl").read_bytes())
    store.open(session).close()
    expected = written(SESSION)
    del expected["todos.json"]  # written only when the plan changes
    assert written(session.folder) == expected


def test_opening_a_stored_session_changes_nothing(tmp_path):
    store = JournalStore(tmp_path)
    session = store.session("p", "s1")
    session.folder.mkdir(parents=True)
    for name in FILES:
        (session.folder / name).write_bytes((SESSION / name).read_bytes())
    journal = store.open(session)
    journal.close()
    assert list(journal.damage) == []
    assert written(session.folder) == written(SESSION)
