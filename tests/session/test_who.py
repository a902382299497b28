"""The name of the user who prompted, decided or answered passes through the session and is shown where it is set."""

import logging

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import (
    Envelope,
    PermissionAsked,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
    RuleAdded,
    Steered,
    ToolCalled,
    TurnEnded,
    TurnStarted,
)
from ostler.core.permission import Decision, Permission, Question, QuestionReply
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import Steer
from ostler.core.tools import ToolCall
from ostler.frontends.headless.summary import SummaryBuilder
from ostler.interaction.open_requests import OpenRequests
from ostler.journal.conversation import read_conversation
from ostler.journal.export_html import to_html
from ostler.journal.export_markdown import to_markdown
from ostler.journal.session_log import SessionLog
from ostler.journal.session_meta import SessionMeta
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ASK_ALL, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("PM-6")
ANNA = Prompt("p1", (TextContent("go"),), who="anna")


async def ask_twice(context, prompt):
    assert prompt.who == "anna"
    call = ToolCall("c1", "probe", {})
    context.emit(ToolCalled(call))
    await context.run_tool(call)
    await context.ask(Question("", "Which?"))


async def test_who_passes_through_the_session_unchanged(tmp_path):
    backend = ScriptedBackend([ask_twice])
    session = await open_test_session(backend, [FakeTool("probe")], LocalWorkspace(str(tmp_path)), policy=ASK_ALL)
    subscription, turn, events = session.subscribe(since=2**62), session.start(ANNA), []
    async for envelope in subscription:
        events.append(envelope.event)
        match envelope.event:
            case PermissionAsked(ask_id):
                await session.apply(Steer(Prompt("p2", (TextContent("left"),), who="carl")))
                assert session.answer(ask_id, Decision("allow", scope="session", who="ben"))
            case QuestionAsked(question):
                assert session.answer(question.id, QuestionReply("accept", who="dora"))
            case TurnEnded():
                break
    assert (await turn.wait()).reason == "done"
    await session.aclose()
    (started,) = [e for e in events if isinstance(e, TurnStarted)]
    (decided,) = [e.decision for e in events if isinstance(e, PermissionDecided)]
    assert (started.prompt.who, decided.by, decided.who) == ("anna", "person", "ben")
    assert [e.reply.who for e in events if isinstance(e, QuestionAnswered)] == ["dora"]
    assert [e.prompt.who for e in events if isinstance(e, Steered)] == ["carl"]
    assert [e.rule.origin for e in events if isinstance(e, RuleAdded)] == ["answer of ben: session"]


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (Decision("allow", by="person", who="ben"), "allow by ben"),
        (Decision("allow", by="person", scope="session", who="ben"), "allow for this session by ben"),
        (Decision("deny", by="person", feedback="no", who="ben"), "deny by ben, with the message"),
        (Decision("deny", by="person", feedback="no"), "deny, with your message"),
        (Decision("allow", by="person", who="be\x1b[31mn"), "allow by be\\x1b[31mn"),
        (Decision("allow", by="person"), "allow"),
    ],
)
def test_who_is_shown_with_the_outcome_of_a_request(decision, text):
    requests = OpenRequests(lambda ask_id, answer: True)
    permission = Permission("write a.txt")
    requests.on_event(PermissionAsked("k", permission))
    closed = requests.on_event(PermissionDecided("k", permission, decision))
    assert closed is not None and closed.outcome == text


def test_who_is_in_the_log_and_in_the_summary_of_a_run(caplog):
    decided = PermissionDecided("k", Permission("write a.txt"), Decision("deny", by="person", feedback="no", who="ben"))
    with caplog.at_level(logging.INFO, "ostler.journal.session"):
        SessionLog("s1").on_record(Envelope(1, 1.0, decided))
    assert "deny by person ben: write a.txt" in caplog.text
    builder = SummaryBuilder()
    builder.on_event(Envelope(1, 1.0, decided))
    assert builder.summarize_turn(TurnEnded("t1", "done")).refusals == ("write a.txt (denied by ben: no)",)


def test_exports_name_the_user_who_prompted():
    records = [Envelope(1, 1.0, TurnStarted("t1", ANNA)), Envelope(2, 2.0, Steered(Prompt("p2", ANNA.blocks)))]
    meta = SessionMeta("s1", "/w")
    markdown = "".join(to_markdown(meta, read_conversation(records), str))
    assert "## anna · 1 ·" in markdown and "## You · 2 ·" in markdown
    page = "".join(to_html(meta, read_conversation(records), str))
    assert "<header>anna · 1 ·" in page and "<header>You · 2 ·" in page
