"""What `/context` tells, of any session that a face may hold."""

from ostler.app.context import context_lines
from ostler.journal.memory import MemoryJournal
from ostler.settings.schema import Compaction
from ostler.testing.stagehand import prompt
from ostler.vocabulary.events import Envelope, PrefixBuilt, TurnStarted, UsageReported


class FarSession:
    """A session that is played elsewhere: all that is known of it is what the seam has."""

    def __init__(self, *events):
        self._past = MemoryJournal("far", [Envelope(seq, 0.0, event) for seq, event in enumerate(events, 1)]).past()

    def records(self):
        return self._past


def test_a_session_that_is_played_elsewhere_is_told_of_too():
    session = FarSession(PrefixBuilt("be kind", ()), TurnStarted("t", prompt("hello")), UsageReported("m", 1, 1))
    lines = context_lines(session, Compaction())
    assert " tokens" in lines[0]


def test_nothing_is_told_where_no_request_was_made():
    assert context_lines(FarSession(), Compaction()) == []


def test_a_call_beside_the_conversation_does_not_hide_the_window():
    """As the one for a title, which is counted and fills nothing."""
    own, beside = UsageReported("m", 1, 1, context_used=2, context_limit=900), UsageReported("small", 5, 5)
    session = FarSession(PrefixBuilt("be kind", ()), TurnStarted("t", prompt("hello")), own, beside)
    assert " of 900 tokens (" in context_lines(session, Compaction())[0]
