"""What `/context` tells, of any session that a face may hold."""

from ostler.app.context_usage import context_lines
from ostler.core.events import Envelope, PrefixBuilt, TurnStarted, UsageReported
from ostler.journal.memory_journal import MemoryJournal
from ostler.settings.schema import CompactionConfig
from ostler.testing.session_fixture import make_prompt


class FarSession:
    """A session that is played elsewhere: all that is known of it is what the seam has."""

    def __init__(self, *events):
        self._past = MemoryJournal("far", [Envelope(seq, 0.0, event) for seq, event in enumerate(events, 1)]).records()

    def records(self):
        return self._past


def test_a_session_that_is_played_elsewhere_is_told_of_too():
    session = FarSession(PrefixBuilt("be kind", ()), TurnStarted("t", make_prompt("hello")), UsageReported("m", 1, 1))
    lines = context_lines(session, CompactionConfig())
    assert " tokens" in lines[0]


def test_nothing_is_told_where_no_request_was_made():
    assert context_lines(FarSession(), CompactionConfig()) == []


def test_a_call_beside_the_conversation_does_not_hide_the_window():
    """As the one for a title, which is counted and fills nothing."""
    own, beside = UsageReported("m", 1, 1, context_used=2, context_limit=900), UsageReported("small", 5, 5)
    session = FarSession(PrefixBuilt("be kind", ()), TurnStarted("t", make_prompt("hello")), own, beside)
    assert " of 900 tokens (" in context_lines(session, CompactionConfig())[0]
