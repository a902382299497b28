"""Notes for the remote side: collecting them reads only the records since the last prompt."""

import pytest

from ostler.core.events import Envelope, TurnEnded, TurnStarted
from ostler.journal.active_records import ActiveRecords
from ostler.journal.records import ListRecords
from ostler.session.unsent_notes import UnsentNotes
from ostler.testing.session_fixture import make_prompt

pytestmark = pytest.mark.req("EN-13")


class CountedRecords(ListRecords):
    reads = 0

    def __getitem__(self, index):
        self.reads += 1
        return super().__getitem__(index)


def reads_for_a_prompt(turns):
    records = CountedRecords()
    for turn in range(turns):
        records.append(Envelope(2 * turn + 1, 0.0, TurnStarted(f"t{turn}", make_prompt("text", f"p{turn}"))))
        records.append(Envelope(2 * turn + 2, 0.0, TurnEnded(f"t{turn}", "done")))
    notes = UnsentNotes(records, ActiveRecords(records))
    records.reads = 0
    assert notes.take("", is_new_history=False) == ()
    return records.reads


def test_long_session_is_not_read_again_for_each_prompt():
    assert reads_for_a_prompt(1000) == reads_for_a_prompt(2)
