"""The end of a headless run: outputs, summary, output schema and signals."""

import io
import json

import jsonschema
import pytest

from ostler.core.display import Display
from ostler.core.errors import Fault, UsageError
from ostler.core.events import Envelope, Notice, PermissionDecided, ToolCalled, ToolFinished, TurnEnded
from ostler.core.permission import Decision, Permission
from ostler.core.tools import ToolCall, ToolResult
from ostler.frontends.headless.answer_validation import AnswerValidator
from ostler.frontends.headless.output_schema import run_schema
from ostler.frontends.headless.outputs import make_output
from ostler.frontends.headless.summary import EXIT_CODES, SummaryBuilder
from ostler.rendering.style import Styler
from ostler.text.stderr import notify


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("reason", EXIT_CODES)
@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_summary_of_every_reason_matches_the_published_schema(capsys, kind, reason):
    fault = Fault("unreachable", "nobody answers") if reason == "failed" else None
    summary = SummaryBuilder().summarize_turn(TurnEnded("t", reason, fault, "1 step" if reason == "limit" else ""))
    make_output(kind, Styler(False)).close(summary)
    record = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(run_schema()).validate(record)
    assert (record["reason"], record["exit"]) == (reason, EXIT_CODES[reason])


@pytest.mark.req("CL-8")
@pytest.mark.parametrize(("reason", "message"), [("timeout", "timed out"), ("cancelled", "cancelled")])
@pytest.mark.parametrize("shaped", [True, False])
def test_incomplete_answer_is_reported(capsys, reason, message, shaped):
    make_output("simple", Styler(False), structured=shaped).close(SummaryBuilder().summarize_stop(reason))
    printed = capsys.readouterr()
    assert (printed.out, message in printed.err) == ("", True)


@pytest.mark.req("CL-8", "EN-6")
def test_notices_are_reported_on_stderr(capsys):
    builder = SummaryBuilder()
    builder.on_event(Envelope(1, 0.0, Notice("warning", "the turn ended before its edits were checked")))
    make_output("simple", Styler(False)).close(builder.summarize_turn(TurnEnded("t", "done")))
    assert capsys.readouterr() == ("", "ostler: the turn ended before its edits were checked\n")


@pytest.mark.req("CL-8")
def test_denials_of_hooks_and_policy_are_listed_once():
    builder = SummaryBuilder()
    by_policy, by_hook = ToolCall("1", "bash", {}), ToolCall("2", "write", {})
    denied = Decision("deny", by="policy", reason="not allowed")
    for event in (
        ToolCalled(by_policy),
        ToolCalled(by_hook),
        PermissionDecided("a", Permission("run make", call_id="1"), denied),
        ToolFinished(ToolResult("1", "denied", "no", Display("not allowed"))),
        ToolFinished(ToolResult("2", "denied", "no", Display("not on Fridays"))),
    ):
        builder.on_event(Envelope(1, 0.0, event))
    summary = builder.summarize_turn(TurnEnded("t", "done"))
    assert (summary.refusals, summary.exit) == (("run make (not allowed)", "write (not on Fridays)"), 4)
    assert [(done.tool, done.status) for done in summary.tools] == [("bash", "denied"), ("write", "denied")]


@pytest.mark.req("CL-8")
@pytest.mark.timeout(60)
def test_too_large_schema_is_a_usage_error():
    with pytest.raises(UsageError, match="/dev/zero is not a JSON Schema: the file is larger than"):
        AnswerValidator("/dev/zero")


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("error", [BrokenPipeError(), OSError("full"), ValueError("closed")])
def test_closed_stderr_is_not_an_error(monkeypatch, error):
    class BrokenStream(io.StringIO):
        def write(self, text):
            raise error

    monkeypatch.setattr("sys.stderr", BrokenStream())
    notify("the model is such and such")
