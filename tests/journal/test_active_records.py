"""Active records: everything except what reverts removed, also when a revert is itself reverted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core.events import Envelope, Renamed, Reverted
from ostler.core.session_view import latest_event
from ostler.journal.active_records import ActiveRecords, EventSequence
from ostler.journal.records import ListRecords

pytestmark = pytest.mark.req("SE-3", "EN-13")


def log(*marks):
    """Build records 1, 2, 3 …: a number is a revert to it, anything else a title."""
    events = (Reverted(mark) if isinstance(mark, int) else Renamed(mark) for mark in marks)
    return [Envelope(seq, 0.0, event) for seq, event in enumerate(events, 1)]


def active_titles(records):
    return "".join(envelope.event.title for envelope in ActiveRecords(ListRecords(records)))


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("abc", "abc"),
        (("a", "b", "c", 1), "a"),
        (("a", "b", "c", 0), ""),
        (("a", "b", "c", 1, "d"), "ad"),
        (("a", "b", "c", 1, 3), "abc"),  # a later revert restores them
        (("a", "b", "c", 1, 4), "a"),  # to just after the first revert
        (("a", "b", "c", 1, "d", "e", 5), "ad"),
        (("a", "b", "c", 1, "d", 3, "e"), "abce"),
        (("a", "b", 1, "c", 1, "d", 4), "ac"),
        (("a", "b", 99), "ab"),
        ((0,), ""),
        ((), ""),
    ],
)
def test_active_records(marks, expected):
    assert active_titles(log(*marks)) == expected


def active_by_definition(records, count):
    """Return the active records by the recursive definition."""
    if count == 0:
        return []
    newest = records[count - 1]
    if not isinstance(newest.event, Reverted):
        return [*active_by_definition(records, count - 1), newest]
    upto = sum(1 for envelope in records[: count - 1] if envelope.seq <= newest.event.to_seq)
    return active_by_definition(records, upto)


steps = st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(0, 40)), max_size=16)


@examples(300)
@given(steps)
def test_matches_the_definition_and_grows_with_the_records(gaps):
    seq, records, stored = 0, [], ListRecords()
    updated = ActiveRecords(stored)
    for gap, to in gaps:
        seq += gap
        records.append(Envelope(seq, 0.0, Renamed(str(seq)) if to is None else Reverted(to)))
        stored.append(records[-1])
        if to is not None:
            updated.refresh()
        expected = active_by_definition(records, len(records))
        for active in (updated, ActiveRecords(stored)):
            assert list(active) == expected
            assert [active[index] for index in range(len(active))] == expected
            assert [active.type_at(index) for index in range(len(active))] == ["renamed"] * len(expected)
            assert list(active.indexes_of({"renamed"})) == list(range(len(expected)))
            assert all(active.index_after(n) == sum(e.seq <= n for e in expected) for n in range(seq + 2))


def test_event_sequence():
    events = EventSequence(ActiveRecords(ListRecords(log("a", "b", "c", 2))))
    assert [event.title for event in events] == ["a", "b"]
    assert (len(events), events[-1].title, [event.title for event in events[:1]]) == (2, "b", ["a"])
    assert [event.title for event in reversed(events)] == ["b", "a"]


def test_latest_event():
    stored = ListRecords(log("a", "b", 1))
    assert latest_event(stored, "renamed") == Renamed("b")
    assert latest_event(ActiveRecords(stored), "renamed") == Renamed("a")
    assert latest_event(stored, "notice") is None
