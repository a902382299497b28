from ostler.core.errors import Fault
from ostler.core.events import ToolFinished, TurnEnded
from ostler.core.tools import ToolResult
from ostler.frontends.server.frame_translator import hide_internal_error

BUG = Fault("bug", "KeyError: 'x'", "Traceback (most recent call last): …")


def test_exceptions_and_tracebacks_are_hidden():
    for event in (TurnEnded("t", "failed", BUG), ToolFinished(ToolResult("c", "failed", "KeyError", fault=BUG))):
        hidden = hide_internal_error(event)
        assert "internal error" in str(hidden)
        assert "KeyError" not in str(hidden) and "Traceback" not in str(hidden)


def test_other_events_stay_unchanged():
    refused = Fault("model_unknown", "the server has no model m")
    for event in (TurnEnded("t", "failed", refused), TurnEnded("t", "done"), ToolFinished(ToolResult("c", "ok", "x"))):
        assert hide_internal_error(event) is event
