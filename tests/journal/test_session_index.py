"""The session index: search and lists, incremental updates, and rebuilding."""

import os
import sqlite3
import stat
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.samples import save_session, turn

from ostler.core.events import Envelope, Renamed, SessionOpened, TurnStarted, UsageReported
from ostler.core.prompt import Prompt, TextContent
from ostler.journal import record_codec
from ostler.journal.file_journal import JOURNAL_NAME
from ostler.journal.journal_store import JournalStore
from ostler.journal.search_text import join_cjk, split_cjk, to_fts_query
from ostler.journal.session_index import HIT_END, HIT_START, SessionIndex

pytestmark = pytest.mark.req("SE-3")


@pytest.fixture
def store(tmp_path):
    return JournalStore(tmp_path / "projects")


@pytest.fixture
def index(store, tmp_path):
    session_index = SessionIndex(store, tmp_path / "cache" / "index.db")
    yield session_index
    session_index.close()


def search_ids(index, query, project=""):
    return [hit.session.meta.id for hit in index.search(query, project)]


def prompt_events(text):
    return [TurnStarted("t", Prompt("p", (TextContent(text),)))]


def test_search_matches_words_of_any_message(store, index):
    save_session(store, "a", turn("fix the Zeppelin", "It flies.", "propeller output"))
    save_session(store, "b", turn("paint the fence", "Blue, naïve and déjà vu.", "brushes"), project="q")
    assert search_ids(index, "zeppelin") == ["a"]
    assert search_ids(index, "zepp") == ["a"]
    assert search_ids(index, "propeller") == ["a"]
    assert search_ids(index, "deja vu") == ["b"]
    assert search_ids(index, '"vu déjà"') == []
    assert search_ids(index, "a.txt") == ["b", "a"]
    assert search_ids(index, "fix blue") == []
    assert search_ids(index, "the", "q") == ["b"]
    assert search_ids(index, "system prompt") == []


def test_hit_has_message_number_role_and_snippet(store, index):
    save_session(store, "a", turn("x", "and then " * 30 + "the Needle " + "was there " * 30))
    (hit,) = index.search("needle")
    assert (hit.number, hit.role) == (10, "assistant")
    assert f"{HIT_START}Needle{HIT_END}" in hit.snippet
    assert len(hit.snippet) < 300


@pytest.mark.parametrize("query", ["世界", "你好世界", "東京", "テスト", "세계"])
def test_scripts_without_spaces_are_searchable(store, index, query):
    save_session(store, "a", turn("在東京你好世界", "テストです 세계"))
    assert search_ids(index, query) == ["a"]
    (hit,) = index.search(query)
    assert query in hit.snippet.replace(HIT_START, "").replace(HIT_END, "")


@given(st.text(max_size=30))
def test_any_search_text_becomes_a_valid_query(text):
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    for terms in (to_fts_query(text), to_fts_query(text, match_prefixes=True)):
        if terms:
            db.execute("SELECT rowid FROM words WHERE words MATCH ?", [terms]).fetchall()
    db.close()


@given(st.text(alphabet="ab 你好世", max_size=30))
def test_join_cjk_undoes_split_cjk(text):
    assert join_cjk(split_cjk(text)).replace(" ", "") == text.replace(" ", "")


def test_growing_session_is_indexed_incrementally(store, index):
    save_session(store, "a", prompt_events("first words"))
    assert search_ids(index, "first") == ["a"]
    save_session(store, "a", prompt_events("second words"))
    assert search_ids(index, "second") == ["a"]
    (count,) = index._db.execute("SELECT count(*) FROM messages").fetchone()
    assert count == 2
    assert [session.meta.turns for session in index.sessions()] == [2]


def test_incomplete_record_is_indexed_once_complete(store, index):
    session = save_session(store, "a", prompt_events("first"))
    complete = session.journal_path.read_bytes()
    last = record_codec.encode(Envelope(9, 1.0, Renamed("hidden")))
    session.journal_path.write_bytes(complete + last[:40])
    assert search_ids(index, "hidden") == []
    session.journal_path.write_bytes(complete + last)
    assert search_ids(index, "hidden") == ["a"]


def test_deleted_and_replaced_sessions_are_removed(store, index):
    a, b = save_session(store, "a", prompt_events("alpha")), save_session(store, "b", prompt_events("beta"))
    assert search_ids(index, "alpha") == ["a"]
    store.delete(a)
    other = b.journal_path.with_name("other")
    other.write_bytes(b.journal_path.read_bytes().replace(b"beta", b"gamm"))
    os.replace(other, b.journal_path)
    assert search_ids(index, "alpha") == []
    assert search_ids(index, "beta") == []
    index.purge()
    index.close()
    assert b"alpha" not in index._path.read_bytes()
    index._db = sqlite3.connect(":memory:")


def test_list_is_newest_first_without_children(store, index):
    for number in range(4):
        save_session(store, f"s{number}", prompt_events(f"words {number}"), time=1e9 + 1000 * (number % 3))
    save_session(store, "child", [SessionOpened("child", "/w", "engine", "1", "s0")])
    assert [session.meta.id for session in index.sessions()] == ["s2", "s1", "s3", "s0"]
    assert [session.meta.id for session in index.sessions(limit=1)] == ["s2"]
    assert len(index.sessions(children=True)) == 5
    assert index.sessions("q") == []


def test_usage_is_summed_by_day_and_model(store, index):
    save_session(
        store, "a", [UsageReported("m", 10, 1, 5, 0.25), UsageReported("m", 10, 1), UsageReported("n", 1, 1, 0, 1.0)]
    )
    assert len(index.usage()) == 2
    save_session(
        store, "a", [UsageReported("m", 5, 5), UsageReported("m", cost=0.0, context_used=9)]
    )  # the last is not a call
    (first, second) = sorted(index.usage(), key=lambda row: row.model)
    assert (first.day, first.calls, first.tokens_in, first.tokens_cached) == ("2001-09-09", 3, 25, 5)
    assert (first.cost, first.unpriced, second.cost) == (0.25, 2, 1.0)
    assert index.usage("q") == []


@pytest.mark.parametrize("damage", ["garbage", "gone", "half", "old", "empty"])
def test_lost_or_damaged_index_is_rebuilt(store, tmp_path, damage):
    save_session(store, "a", turn("zeppelin " * 2000))
    path = tmp_path / "cache" / "index.db"
    first = SessionIndex(store, path)
    assert search_ids(first, "zeppelin") == ["a"]
    first.close()
    match damage:
        case "garbage":
            path.write_bytes(b"no database " * 1000)
        case "gone":
            path.unlink()
        case "half":
            path.write_bytes(path.read_bytes()[:9000])
        case "empty":
            path.write_bytes(b"")
        case "old":
            db = sqlite3.connect(path)
            db.execute("PRAGMA user_version = 99")
            db.close()
    rebuilt = SessionIndex(store, path)
    assert search_ids(rebuilt, "zeppelin") == ["a"]
    rebuilt.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_damage_found_by_a_query_is_repaired(store, index):
    save_session(store, "a", turn("zeppelin"))
    assert search_ids(index, "zeppelin") == ["a"]
    index._db.execute("DROP TABLE messages")
    assert search_ids(index, "zeppelin") == ["a"]


def test_unwritable_index_is_kept_in_memory(store, tmp_path):
    save_session(store, "a", turn("zeppelin"))
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    index = SessionIndex(store, blocked / "index.db")
    assert search_ids(index, "zeppelin") == ["a"]
    index.close()


def test_damaged_and_newer_sessions_are_listed(store, index):
    session = save_session(store, "a", prompt_events("alpha"))
    session.journal_path.write_bytes(session.journal_path.read_bytes() + b"\0" * 100 + b"\n" + b"{}\n")
    newer = save_session(store, "b", prompt_events("beta"))
    body = b'{"v":2,"seq":40,"time":1.0,"event":{"type":"new"}'
    import zlib

    newer.journal_path.write_bytes(newer.journal_path.read_bytes() + b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body)))
    (store.root / "p" / "sessions" / "empty").mkdir()
    assert search_ids(index, "alpha") == ["a"]
    titles = {listed.meta.id: listed.meta.title for listed in index.sessions()}
    assert titles == {"a": "alpha", "b": "(record 40 has format 2; this version reads up to 1)"}


def write_many_sessions(store, count):
    """Write session files directly, for speed."""
    for number in range(count):
        session = store.session(f"p{number % 20}", f"s{number:05}")
        session.folder.mkdir(parents=True)
        events = [SessionOpened(session.id, "/w", "engine", "1"), *turn(f"look {number}", "word " * 50, "out " * 50)]
        lines = (record_codec.encode(Envelope(seq, 1e9 + number, event)) for seq, event in enumerate(events, 1))
        (session.folder / JOURNAL_NAME).write_bytes(b"".join(lines))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_search_is_fast_with_ten_thousand_sessions(store, tmp_path):
    write_many_sessions(store, 10_000)
    reports = []
    index = SessionIndex(store, tmp_path / "index.db", reports.append)
    index.sessions()
    assert reports == ["building the search index for 10000 sessions (once)"]
    for query, hits in (("look 7777", 1), ("word", 20), ("out word", 0), ("nothing at all", 0)):
        times = []
        for _ in range(3):
            started = time.process_time()
            assert len(index.search(query)) == hits
            times.append(time.process_time() - started)
        assert min(times) <= 0.2, (query, times)
    index.close()
