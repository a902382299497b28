"""The index: sessions found by their words and times, made up as they grow, made again when it is lost."""

import os
import sqlite3
import stat
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.samples import keep, turn

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
    made = SessionIndex(store, tmp_path / "cache" / "index.db")
    yield made
    made.close()


def found(index, words, project=""):
    return [hit.session.meta.id for hit in index.search(words, project)]


def said(words):
    return [TurnStarted("t", Prompt("p", (TextContent(words),)))]


def test_sessions_are_found_by_words_of_any_message(store, index):
    keep(store, "a", turn("mend the Zeppelin", "It flies.", "propeller output"))
    keep(store, "b", turn("paint the fence", "Blue, naïve and déjà vu.", "brushes"), project="q")
    assert found(index, "zeppelin") == ["a"]
    assert found(index, "zepp") == ["a"]
    assert found(index, "propeller") == ["a"]
    assert found(index, "deja vu") == ["b"]
    assert found(index, '"vu déjà"') == []
    assert found(index, "a.txt") == ["b", "a"]
    assert found(index, "mend blue") == []
    assert found(index, "the", "q") == ["b"]
    assert found(index, "system prompt") == []


def test_a_hit_tells_where_and_shows_the_words(store, index):
    keep(store, "a", turn("x", "and then " * 30 + "the Needle " + "was there " * 30))
    (hit,) = index.search("needle")
    assert (hit.number, hit.role) == (10, "assistant")
    assert f"{HIT_START}Needle{HIT_END}" in hit.snippet
    assert len(hit.snippet) < 300


@pytest.mark.parametrize("words", ["世界", "你好世界", "東京", "テスト", "세계"])
def test_scripts_without_blanks_are_found(store, index, words):
    keep(store, "a", turn("在東京你好世界", "テストです 세계"))
    assert found(index, words) == ["a"]
    (hit,) = index.search(words)
    assert words in hit.snippet.replace(HIT_START, "").replace(HIT_END, "")


@given(st.text(max_size=30))
def test_no_search_is_a_query_of_its_own(words):
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    for terms in (to_fts_query(words), to_fts_query(words, match_prefixes=True)):
        if terms:
            db.execute("SELECT rowid FROM words WHERE words MATCH ?", [terms]).fetchall()
    db.close()


@given(st.text(alphabet="ab 你好世", max_size=30))
def test_blanks_between_characters_come_and_go(text):
    assert join_cjk(split_cjk(text)).replace(" ", "") == text.replace(" ", "")


def test_what_a_session_grows_by_is_found_and_nothing_twice(store, index):
    keep(store, "a", said("first words"))
    assert found(index, "first") == ["a"]
    keep(store, "a", said("second words"))
    assert found(index, "second") == ["a"]
    (count,) = index._db.execute("SELECT count(*) FROM messages").fetchone()
    assert count == 2
    assert [one.meta.turns for one in index.sessions()] == [2]


def test_a_torn_tail_is_not_found_until_it_is_whole(store, index):
    place = keep(store, "a", said("first"))
    whole = place.journal_path.read_bytes()
    last = record_codec.encode(Envelope(9, 1.0, Renamed("hidden")))
    place.journal_path.write_bytes(whole + last[:40])
    assert found(index, "hidden") == []
    place.journal_path.write_bytes(whole + last)
    assert found(index, "hidden") == ["a"]


def test_deleted_and_replaced_sessions_are_forgotten(store, index):
    a, b = keep(store, "a", said("alpha")), keep(store, "b", said("beta"))
    assert found(index, "alpha") == ["a"]
    store.delete(a)
    other = b.journal_path.with_name("other")
    other.write_bytes(b.journal_path.read_bytes().replace(b"beta", b"gamm"))
    os.replace(other, b.journal_path)
    assert found(index, "alpha") == []
    assert found(index, "beta") == []
    index.purge()
    index.close()
    assert b"alpha" not in index._path.read_bytes()
    index._db = sqlite3.connect(":memory:")


def test_lists_are_newest_first_and_children_are_their_parents_business(store, index):
    for number in range(4):
        keep(store, f"s{number}", said(f"words {number}"), time=1e9 + 1000 * (number % 3))
    keep(store, "child", [SessionOpened("child", "/w", "engine", "1", "s0")])
    assert [one.meta.id for one in index.sessions()] == ["s2", "s1", "s3", "s0"]
    assert [one.meta.id for one in index.sessions(limit=1)] == ["s2"]
    assert len(index.sessions(children=True)) == 5
    assert index.sessions("q") == []


def test_spending_is_summed_by_day_and_model(store, index):
    keep(store, "a", [UsageReported("m", 10, 1, 5, 0.25), UsageReported("m", 10, 1), UsageReported("n", 1, 1, 0, 1.0)])
    assert len(index.usage()) == 2
    keep(store, "a", [UsageReported("m", 5, 5), UsageReported("m", cost=0.0, context_used=9)])  # the last is no call
    (first, second) = sorted(index.usage(), key=lambda spent: spent.model)
    assert (first.day, first.calls, first.tokens_in, first.tokens_cached) == ("2001-09-09", 3, 25, 5)
    assert (first.cost, first.unpriced, second.cost) == (0.25, 2, 1.0)
    assert index.usage("q") == []


@pytest.mark.parametrize("harm", ["garbage", "gone", "half", "old", "empty"])
def test_a_lost_or_damaged_index_is_made_again(store, tmp_path, harm):
    keep(store, "a", turn("zeppelin " * 2000))
    path = tmp_path / "cache" / "index.db"
    first = SessionIndex(store, path)
    assert found(first, "zeppelin") == ["a"]
    first.close()
    match harm:
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
    again = SessionIndex(store, path)
    assert found(again, "zeppelin") == ["a"]
    again.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_damage_that_shows_only_when_asked_is_mended(store, index):
    keep(store, "a", turn("zeppelin"))
    assert found(index, "zeppelin") == ["a"]
    index._db.execute("DROP TABLE messages")
    assert found(index, "zeppelin") == ["a"]


def test_where_no_index_can_be_written_the_sessions_are_still_found(store, tmp_path):
    keep(store, "a", turn("zeppelin"))
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    index = SessionIndex(store, blocked / "index.db")
    assert found(index, "zeppelin") == ["a"]
    index.close()


def test_damaged_and_newer_sessions_are_listed_as_far_as_they_can_be_read(store, index):
    place = keep(store, "a", said("alpha"))
    place.journal_path.write_bytes(place.journal_path.read_bytes() + b"\0" * 100 + b"\n" + b"{}\n")
    newer = keep(store, "b", said("beta"))
    body = b'{"v":2,"seq":40,"time":1.0,"event":{"type":"new"}'
    import zlib

    newer.journal_path.write_bytes(newer.journal_path.read_bytes() + b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body)))
    (store.root / "p" / "sessions" / "empty").mkdir()
    assert found(index, "alpha") == ["a"]
    titles = {one.meta.id: one.meta.title for one in index.sessions()}
    assert titles == {"a": "alpha", "b": "(record 40 has format 2; this Ostler reads up to 1)"}


def many(store, count):
    """Sessions written by hand, for speed."""
    for number in range(count):
        place = store.place(f"p{number % 20}", f"s{number:05}")
        place.folder.mkdir(parents=True)
        events = [SessionOpened(place.id, "/w", "engine", "1"), *turn(f"look {number}", "word " * 50, "out " * 50)]
        lines = (record_codec.encode(Envelope(seq, 1e9 + number, event)) for seq, event in enumerate(events, 1))
        (place.folder / JOURNAL_NAME).write_bytes(b"".join(lines))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ten_thousand_sessions_are_searched_in_a_fifth_of_a_second(store, tmp_path):
    many(store, 10_000)
    told = []
    index = SessionIndex(store, tmp_path / "index.db", told.append)
    index.sessions()
    assert told == ["reading 10000 sessions for the index, this once"]
    for words, hits in (("look 7777", 1), ("word", 20), ("out word", 0), ("nothing at all", 0)):
        times = []
        for _ in range(3):
            begun = time.process_time()
            assert len(index.search(words)) == hits
            times.append(time.process_time() - begun)
        assert min(times) <= 0.2, (words, times)
    index.close()
