"""What every store of a server does with the sessions of its users, whichever database it has."""

import pytest
from tests.storage.store_cases import HOSTED_CASES, PROJECT, ROOT, append_all, events_of_a_turn, save

from ostler.core.errors import JournalError, UsageError
from ostler.core.events import Envelope, Notice, Queued, SessionOpened, TurnEnded, TurnStarted
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import SessionQuery

pytestmark = pytest.mark.req("SV-8")


@pytest.fixture(params=HOSTED_CASES)
def case(request, tmp_path, monkeypatch):
    case = HOSTED_CASES[request.param](tmp_path, monkeypatch)
    yield case
    case.close()


# -- two writers ---------------------------------------------------------------------------------------------------


def test_process_that_lost_a_session_cannot_write_to_it(case):
    old, new = case.connect(), case.connect()
    journal = old.open(PROJECT, "s1")
    append_all(journal, [SessionOpened("s1", ROOT, "engine", "1")])
    case.pretend_dead(old)
    taken = new.open(PROJECT, "s1")
    assert taken.epoch == journal.epoch + 1
    journal.append(Envelope(2, 0.0, Notice("info", "from the old process")))
    with pytest.raises(JournalError) as caught:
        journal.sync()
    assert caught.value.fault.code == "session_lost"
    with pytest.raises(JournalError, match="another process"):
        journal.append(Envelope(3, 0.0, Notice("info", "again")))
    append_all(taken, [Notice("info", "from the new process")])
    journal.close()  # does not release the session of the other process
    with pytest.raises(JournalError, match="open in another process"):
        case.connect().open(PROJECT, "s1")
    taken.close()
    again = case.connect().open(PROJECT, "s1")
    assert [envelope.event.text for envelope in list(again.records())[1:]] == ["from the new process"]


@pytest.mark.parametrize("seq", [0, 1, 3, 99])
def test_record_that_does_not_follow_the_last_one_is_refused(case, seq):
    journal = case.connect().open(PROJECT, "s1")
    append_all(journal, [Notice("info", "one")])
    with pytest.raises(JournalError, match="does not follow"):
        journal.append(Envelope(seq, 0.0, Notice("info", "x")))
    append_all(journal, [Notice("info", "two")])
    assert len(journal.records()) == 2


def test_three_processes_write_at_the_same_time(case):
    journals = [case.connect().open(PROJECT, name) for name in ("s1", "s2", "s3")]
    for seq in range(1, 60):
        for journal in journals:
            journal.append(Envelope(seq, 0.0, Notice("info", str(seq))))
    for journal in journals:
        journal.close()
    for name in ("s1", "s2", "s3"):
        again = case.connect().open(PROJECT, name)
        assert [envelope.seq for envelope in again.records()] == list(range(1, 60))


# -- users, expiry, takeover ---------------------------------------------------------------------------------------


@pytest.mark.req("SV-5")
def test_users_see_only_their_own_sessions(case):
    sessions = case.sessions()
    alice, bob = sessions.of("alice"), sessions.of("bob")
    save(alice, "s1")
    assert list(bob.list(SessionQuery())) == list(bob.list(SessionQuery(text="parser"))) == []
    for action in (
        lambda: bob.open(PROJECT, "s1"),
        lambda: bob.find(PROJECT, "s1"),
        lambda: bob.find(PROJECT, "s"),
        lambda: bob.backend("s1"),
        lambda: bob.fork("s1"),
        lambda: bob.rename("s1", "mine"),
        lambda: bob.delete("s1"),
        lambda: bob.host("s1"),
        lambda: bob.set_host("s1", "/", b""),
    ):
        with pytest.raises(UsageError, match="not found"):
            action()
    assert alice.find(PROJECT, "last") == "s1"


@pytest.mark.req("SV-5")
def test_ids_of_new_sessions_cannot_be_guessed(case):
    assert len(save(case.connect()).rpartition("-")[2]) == 32


def test_expired_sessions_are_deleted_unless_they_are_open(case):
    sessions = case.sessions()
    store = sessions.of("alice")
    save(store, "old", time=1000)
    save(store, "new", time=5000)
    save(sessions.of("bob"), "bobs", time=1000)
    save(store, "open", time=1000)
    journal = case.connect().open(PROJECT, "open")
    assert sorted(sessions.delete_expired(4000)) == ["bobs", "old"]
    assert {found.id for found in store.list(SessionQuery())} == {"new", "open"}
    journal.close()


def test_interrupted_sessions_are_listed_until_a_process_has_them(case):
    sessions = case.sessions()
    store = sessions.of("alice")
    started = events_of_a_turn()[:1]
    save(store, "done")
    save(store, "s1", started)
    save(sessions.of("bob"), "s2", started, root="/bobs")
    child = store.open(PROJECT, "child")
    append_all(child, [SessionOpened("child", ROOT, "engine", "1", "s1"), *started])
    child.close()
    store.fork("s1")
    found = case.sessions().interrupted()
    assert [(session.owner, session.id, session.root) for session in found] == [
        ("alice", "s1", ROOT),
        ("bob", "s2", "/bobs"),
    ]
    journal = store.open(PROJECT, "s1")
    assert [session.id for session in case.sessions().interrupted()] == ["s2"]
    append_all(journal, [TurnEnded("turn-1", "done")])
    journal.close()
    assert [session.id for session in sessions.interrupted()] == ["s2"]
    assert isinstance(started[0], TurnStarted)


def test_session_with_waiting_messages_is_listed_although_no_turn_runs(case):
    store, prompt = case.connect(), Prompt("m1", (TextContent("go"),))
    save(store, "s1", [*events_of_a_turn(), Queued(("go",), (prompt,))])
    assert [session.id for session in case.sessions().interrupted()] == ["s1"]
    journal = store.open(PROJECT, "s1")
    append_all(journal, [Queued((), ())])
    journal.close()
    assert case.sessions().interrupted() == []


def test_manifest_and_root_of_the_tool_host_are_kept(case):
    store = case.connect()
    save(store, "s1")
    assert store.host("s1") == (ROOT, b"")
    store.set_host("s1", "/home/alice/work", b'{"tools":[]}')
    assert case.connect().host("s1") == ("/home/alice/work", b'{"tools":[]}')
    assert case.connect().host(store.fork("s1"))[1] == b'{"tools":[]}'
