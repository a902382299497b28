"""The files of a session, byte for byte as today's version writes them, and read back."""

import pytest
from tests.stored import STORED

from ostler.journal.file_journal import read_journal
from ostler.journal.journal_store import JournalStore

pytestmark = pytest.mark.req("SE-1")
SESSION = STORED / "session"
FILES = ("journal.jsonl", "meta.json", "todos.json", "history.xnl")


def written(folder):
    return {name: (folder / name).read_text("utf-8") for name in FILES if (folder / name).exists()}


def test_a_session_is_written_in_the_stored_form(tmp_path):
    store = JournalStore(tmp_path)
    place = store.session("p", "s1")
    journal = store.open(place)
    for envelope in read_journal(SESSION / "journal.jsonl"):
        journal.append(envelope)
    journal.close()
    assert written(place.folder) == written(SESSION)
    assert sorted(written(SESSION)) == sorted(FILES)


def test_what_stands_beside_the_journal_is_made_again_from_it(tmp_path):
    store = JournalStore(tmp_path)
    place = store.session("p", "s1")
    place.folder.mkdir(parents=True)
    place.journal_path.write_bytes((SESSION / "journal.jsonl").read_bytes())
    store.open(place).close()
    expected = written(SESSION)
    del expected["todos.json"]  # written only when the plan changes
    assert written(place.folder) == expected


def test_a_stored_session_is_opened_without_a_change(tmp_path):
    store = JournalStore(tmp_path)
    place = store.session("p", "s1")
    place.folder.mkdir(parents=True)
    for name in FILES:
        (place.folder / name).write_bytes((SESSION / name).read_bytes())
    journal = store.open(place)
    journal.close()
    assert list(journal.damage) == []
    assert written(place.folder) == written(SESSION)
