"""Queued prompts of a killed process are recovered once, and not from running sessions."""

import pytest

from ostler.core.events import Envelope, Notice, Queued
from ostler.journal.journal_store import JournalStore
from ostler.session.state import state_from_records
from ostler.session.unsent_prompts import take_unsent_prompts

pytestmark = pytest.mark.req("EN-16")


def journal_with(store, session_id, *events):
    journal = store.open(store.session("p", session_id))
    for seq, event in enumerate(events, 1):
        journal.append(Envelope(seq, 0.0, event))
    return journal


def test_queued_prompts_of_a_dead_process_are_taken_once(tmp_path):
    store = JournalStore(tmp_path)
    journal_with(store, "one", Queued(("first",)), Queued(("first", "two\nlines"))).close()
    assert take_unsent_prompts(store, "p") == "first\ntwo\nlines"
    assert take_unsent_prompts(store, "p") == ""
    journal = store.open(store.session("p", "one"))
    assert state_from_records(journal.records()).queued == ()
    journal.close()


def test_sent_prompts_and_running_sessions_are_ignored(tmp_path):
    store = JournalStore(tmp_path)
    journal_with(store, "sent", Queued(("a",)), Queued()).close()
    journal_with(store, "other", Notice("info", 'the word "queued"')).close()
    running = journal_with(store, "running", Queued(("theirs",)))
    assert take_unsent_prompts(store, "p") == ""
    running.close()
    assert take_unsent_prompts(store, "p") == "theirs"


def test_broken_or_missing_journal_is_not_an_error(tmp_path):
    store = JournalStore(tmp_path)
    journal_with(store, "broken", Queued(("a",))).close()
    store.session("p", "broken").journal_path.write_bytes(b'{"v":99,"queued":"queued"}\n\xff\n')
    (tmp_path / "p" / "sessions" / "empty").mkdir()
    assert take_unsent_prompts(store, "p") == ""
    assert take_unsent_prompts(store, "nowhere") == ""
