"""The lines of `/context`."""

from ostler.backends.engine.context_usage import context_lines
from ostler.core.events import Envelope, PrefixBuilt, TurnStarted, UsageReported
from ostler.journal.memory_journal import MemoryJournal
from ostler.settings.schema import CompactionConfig
from ostler.testing.session_fixture import make_prompt


class RecordedSession:
    """A session that only has records."""

    def __init__(self, *events):
        self._records = MemoryJournal(
            "far", [Envelope(seq, 0.0, event) for seq, event in enumerate(events, 1)]
        ).records()

    def records(self):
        return self._records


def test_lines_are_computed_from_records():
    session = RecordedSession(
        PrefixBuilt("be kind", ()), TurnStarted("t", make_prompt("hello")), UsageReported("m", 1, 1)
    )
    lines = context_lines(session, CompactionConfig())
    assert " tokens" in lines[0]


def test_no_lines_before_the_first_request():
    assert context_lines(RecordedSession(), CompactionConfig()) == []


def test_internal_call_does_not_hide_the_context_window():
    """Such as the call for a title, which is not part of the context."""
    own, internal = UsageReported("m", 1, 1, context_used=2, context_limit=900), UsageReported("small", 5, 5)
    session = RecordedSession(PrefixBuilt("be kind", ()), TurnStarted("t", make_prompt("hello")), own, internal)
    assert " of 900 tokens (" in context_lines(session, CompactionConfig())[0]
