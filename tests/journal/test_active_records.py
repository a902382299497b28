"""What counts after reverts: the way back from the end, jumping at each revert that lies on it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.core.events import Envelope, Renamed, Reverted
from ostler.journal.active_records import ActiveRecords, EventSequence, latest_event
from ostler.journal.records import ListRecords

pytestmark = pytest.mark.req("SE-3", "EN-13")


def log(*marks):
    """Records 1, 2, 3 …: a number is a revert to it, anything else a title."""
    events = (Reverted(mark) if isinstance(mark, int) else Renamed(mark) for mark in marks)
    return [Envelope(seq, 0.0, event) for seq, event in enumerate(events, 1)]


def words(records):
    return "".join(envelope.event.title for envelope in ActiveRecords(ListRecords(records)))


@pytest.mark.parametrize(
    ("marks", "counts"),
    [
        ("abc", "abc"),
        (("a", "b", "c", 1), "a"),
        (("a", "b", "c", 0), ""),
        (("a", "b", "c", 1, "d"), "ad"),
        (("a", "b", "c", 1, 3), "abc"),  # a later revert counts it again
        (("a", "b", "c", 1, 4), "a"),  # to just after the first revert
        (("a", "b", "c", 1, "d", "e", 5), "ad"),
        (("a", "b", "c", 1, "d", 3, "e"), "abce"),
        (("a", "b", 1, "c", 1, "d", 4), "ac"),
        (("a", "b", 99), "ab"),
        ((0,), ""),
        ((), ""),
    ],
)
def test_what_counts(marks, counts):
    assert words(log(*marks)) == counts


def counting_after(records, count):
    """The same, as the definition has it."""
    if count == 0:
        return []
    newest = records[count - 1]
    if not isinstance(newest.event, Reverted):
        return [*counting_after(records, count - 1), newest]
    upto = sum(1 for envelope in records[: count - 1] if envelope.seq <= newest.event.to_seq)
    return counting_after(records, upto)


steps = st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(0, 40)), max_size=16)


@settings(max_examples=300, deadline=None)
@given(steps)
def test_it_is_as_the_definition_has_it_and_grows_with_the_past(gaps):
    seq, records, past = 0, [], ListRecords()
    live = ActiveRecords(past)
    for gap, to in gaps:
        seq += gap
        records.append(Envelope(seq, 0.0, Renamed(str(seq)) if to is None else Reverted(to)))
        past.append(records[-1])
        if to is not None:
            live.refresh()
        wanted = counting_after(records, len(records))
        for counting in (live, ActiveRecords(past)):
            assert list(counting) == wanted
            assert [counting[index] for index in range(len(counting))] == wanted
            assert [counting.type_at(index) for index in range(len(counting))] == ["renamed"] * len(wanted)
            assert list(counting.indexes_of({"renamed"})) == list(range(len(wanted)))
            assert all(counting.index_after(n) == sum(e.seq <= n for e in wanted) for n in range(seq + 2))


def test_events_are_a_sequence():
    events = EventSequence(ActiveRecords(ListRecords(log("a", "b", "c", 2))))
    assert [event.title for event in events] == ["a", "b"]
    assert (len(events), events[-1].title, [event.title for event in events[:1]]) == (2, "b", ["a"])
    assert [event.title for event in reversed(events)] == ["b", "a"]


def test_the_last_of_a_kind():
    past = ListRecords(log("a", "b", 1))
    assert latest_event(past, "renamed") == Renamed("b")
    assert latest_event(ActiveRecords(past), "renamed") == Renamed("a")
    assert latest_event(past, "notice") is None
