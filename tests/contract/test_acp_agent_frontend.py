"""The scenarios with the ACP agent frontend: a test editor, and the engine with a scripted model."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from drivers import Calls, Crash, EngineDriver, Hold, Say
from tests.fake_services import FakeServices
from tests.frontends.acp_agent.editor_end import NOTHING, EditorEnd

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import MessageDone, Steered, TextDelta
from ostler.core.message import Message
from ostler.core.permission import Decision, Question, QuestionReply
from ostler.core.prompt import TextContent
from ostler.core.sessions import SessionSummary
from ostler.testing.fake_tool import FakeTool
from ostler.testing.scripted_model import ScriptedCall
from ostler.testing.session_fixture import ALLOW_ALL, ASK_ALL, SingleSessionManager, make_prompt, open_test_session
from ostler.wire.jsonrpc import RpcError
from ostler.workspace.local_workspace import LocalWorkspace

NON_INTERACTIVE = type(ASK_ALL)(rules=ASK_ALL.rules, interactive=False)


class FakeWorkspaceProvider:
    def __init__(self, session):
        self._services = FakeServices()
        self._services.known_sessions = [SessionSummary(session.id, session.cwd)]

    def services(self, cwd):
        return self._services

    def log(self, line):
        raise AssertionError(line)

    def workspace(self, cwd, editor):
        return None


@asynccontextmanager
async def open_editor(session, tmp_path, capabilities=NOTHING):
    editor = EditorEnd(tmp_path, SingleSessionManager(session), FakeWorkspaceProvider(session))
    try:
        assert await editor.opened(capabilities) == session.id
        yield editor
    finally:
        await editor.aclose()
    assert editor.faults == []


async def session_of(tmp_path, moves, tools=(), policy=ALLOW_ALL):
    backend = EngineDriver().backend([moves], [tool.spec for tool in tools])
    return await open_test_session(backend, list(tools), LocalWorkspace(str(tmp_path)), policy=policy)


@pytest.mark.scenario("plain answer")
async def test_01_plain_answer(tmp_path):
    session = await session_of(tmp_path, [Say("Hello "), Say("there.")])
    async with open_editor(session, tmp_path) as editor:
        assert (await editor.prompt(session.id, "go"))["stopReason"] == "end_turn"
        assert editor.text() == "Hello there."


@pytest.mark.scenario("tool")
async def test_02_tool(tmp_path):
    moves = [Say("Looking."), Calls((ScriptedCall("probe", {"subject": "x"}, "c"),)), Say("Found.")]
    session = await session_of(tmp_path, moves, [FakeTool("probe")])
    async with open_editor(session, tmp_path) as editor:
        await editor.prompt(session.id, "go")
        kinds = [u["sessionUpdate"] for _, u in editor.updates if u["sessionUpdate"] != "usage_update"]
        assert kinds.index("agent_message_chunk") < kinds.index("tool_call") < kinds.index("tool_call_update")
        assert (editor.call("c")["status"], editor.call("c")["rawInput"]) == ("completed", {"subject": "x"})
        assert len({u["messageId"] for u in editor.updates_of("agent_message_chunk")}) == 2


@pytest.mark.scenario("refusal with feedback")
async def test_03_refusal(tmp_path):
    tool = FakeTool("probe")
    session = await session_of(
        tmp_path, [Calls((ScriptedCall("probe", {}, "c"),)), Say("As you say.")], [tool], ASK_ALL
    )
    async with open_editor(session, tmp_path) as editor:
        editor.choosing("deny")
        await editor.prompt(session.id, "go")
        assert (editor.call("c")["status"], editor.text(), tool.runs) == ("failed", "As you say.", [])


@pytest.mark.scenario("cancel during an approval request")
async def test_04_cancel_during_an_approval_request(tmp_path):
    tool = FakeTool("probe")
    session = await session_of(tmp_path, [Calls((ScriptedCall("probe"),))], [tool], ASK_ALL)
    async with open_editor(session, tmp_path) as editor:
        waiting = asyncio.Event()

        async def never(params):
            await waiting.wait()

        editor.answers["session/request_permission"] = never
        turn = asyncio.ensure_future(editor.prompt(session.id, "go"))
        await editor.until(lambda: editor.asked)
        editor.peer.notify("session/cancel", {"sessionId": session.id})
        assert (await turn)["stopReason"] == "cancelled"
        assert (tool.runs, dict(session.state.asks)) == ([], {})


@pytest.mark.scenario("cancel during a call")
async def test_05_cancel_during_a_call(tmp_path):
    async def forever(arguments, context):
        await asyncio.Event().wait()

    session = await session_of(tmp_path, [Calls((ScriptedCall("probe", {}, "c"),))], [FakeTool("probe", forever)])
    async with open_editor(session, tmp_path) as editor:
        turn = asyncio.ensure_future(editor.prompt(session.id, "go"))
        await editor.until(lambda: editor.call("c").get("status") == "in_progress")
        editor.peer.notify("session/cancel", {"sessionId": session.id})
        assert (await turn)["stopReason"] == "cancelled"
        assert editor.call("c")["status"] == "failed"


@pytest.mark.scenario("connection lost")
async def test_06_connection_lost(tmp_path):
    session = await session_of(tmp_path, [Say("I was about"), Crash()])
    async with open_editor(session, tmp_path) as editor:
        with pytest.raises(RpcError, match="the connection was lost"):
            await editor.prompt(session.id, "go")
        assert editor.text() == "I was about"


@pytest.mark.scenario("two approval requests at once")
async def test_07_two_approval_requests_at_once(tmp_path):
    first, second = FakeTool("first", effects=False), FakeTool("second", effects=False)
    both = Calls((ScriptedCall("first", {}, "c1"), ScriptedCall("second", {}, "c2")))
    session = await session_of(tmp_path, [both, Say("Done.")], [first, second], ASK_ALL)
    async with open_editor(session, tmp_path) as editor:

        async def answer(params):
            chosen = "deny" if params["toolCall"]["toolCallId"] == "c1" else "once"
            return {"outcome": {"outcome": "selected", "optionId": chosen}}

        editor.answers["session/request_permission"] = answer
        await editor.prompt(session.id, "go")
        assert (len(first.runs), len(second.runs)) == (0, 1)


@pytest.mark.scenario("two approval requests at once")
async def test_request_answered_elsewhere_is_withdrawn(tmp_path):
    tool = FakeTool("probe")
    session = await session_of(tmp_path, [Calls((ScriptedCall("probe"),)), Say("Done.")], [tool], ASK_ALL)
    async with open_editor(session, tmp_path) as editor:
        withdrawn = asyncio.Event()

        async def never(params):
            try:
                await asyncio.Event().wait()
            finally:
                withdrawn.set()

        editor.answers["session/request_permission"] = never
        turn = asyncio.ensure_future(editor.prompt(session.id, "go"))
        await editor.until(lambda: editor.asked)
        assert session.answer(next(iter(session.state.asks)), Decision("allow", by="person"))
        assert (await turn)["stopReason"] == "end_turn"
        async with asyncio.timeout(30):
            await withdrawn.wait()
        assert len(tool.runs) == 1


@pytest.mark.req("SH-4")
@pytest.mark.scenario("non-interactive session")
async def test_08_non_interactive_session(tmp_path):
    moves = [Calls((ScriptedCall("probe", {}, "c"),)), Say("I could not.")]
    session = await session_of(tmp_path, moves, [FakeTool("probe")], NON_INTERACTIVE)
    async with open_editor(session, tmp_path) as editor:
        await editor.prompt(session.id, "go")
        assert (editor.asked, editor.call("c")["status"]) == ([], "failed")


@pytest.mark.scenario("repeated call id")
async def test_09_repeated_call_id(tmp_path):
    again = Calls((ScriptedCall("probe", {}, "the-call"),))
    session = await session_of(tmp_path, [again, again, Say("Done.")], [FakeTool("probe")])
    async with open_editor(session, tmp_path) as editor:
        await editor.prompt(session.id, "go")
        first, second = (
            update["toolCallId"] for update in editor.updates_of("tool_call")
        )  # the engine gives the second call a new id
        assert first != second
        assert [editor.call(call_id)["status"] for call_id in (first, second)] == ["completed"] * 2


@pytest.mark.req("EN-16")
@pytest.mark.scenario("steer")
async def test_10_steer(tmp_path):
    held = asyncio.Event()
    backend = EngineDriver().backend([[Say("Thinking"), Hold(held), Say(" on.")], [Say(" Left it is.")]], [])
    session = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)))
    async with open_editor(session, tmp_path) as editor:
        turn = asyncio.ensure_future(editor.prompt(session.id, "go"))
        await editor.until(lambda: editor.text())
        with pytest.raises(RpcError, match="still running"):
            await editor.prompt(session.id, "look left")
        words = {"sessionId": session.id, "prompt": [{"type": "text", "text": "look left"}]}
        assert await editor.peer.request("_session/steering", words) == {"outcome": "injected"}
        held.set()
        assert (await turn)["stopReason"] == "end_turn"
        assert editor.text() == "Thinking on. Left it is."
    assert [e.prompt.text for e in session.events() if isinstance(e, Steered)] == ["look left"]


@pytest.mark.req("EN-16")
@pytest.mark.scenario("steer")
async def test_10_steer_without_a_running_turn(tmp_path):
    session = await session_of(tmp_path, [Say("Begun.")])
    async with open_editor(session, tmp_path) as editor:
        words = {"sessionId": session.id, "prompt": [{"type": "text", "text": "look left"}]}
        waiting = {**words, "_meta": {"steering": {"idleBehavior": "promptRequired"}}}
        answer = await editor.peer.request("_session/steering", waiting)
        assert answer == {"outcome": "promptRequired", "reason": "noRunningTurn"}
        assert await editor.peer.request("_session/steering", words) == {"outcome": "startedNewTurn"}
        await editor.until(lambda: editor.text() == "Begun.")


@pytest.mark.scenario("turn started by the remote side")
async def test_12_turn_started_by_the_remote_side(tmp_path):
    async def act(context, _):
        context.emit(TextDelta("m", "I began."))
        context.emit(MessageDone(Message("m", (TextContent("I began."),))))

    backend = ScriptedBackend([act])
    session = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)))
    async with open_editor(session, tmp_path) as editor:
        backend.context.remote_turn_started(make_prompt("from afar"))
        await editor.until(lambda: editor.text() == "I began.")


@pytest.mark.req("SE-1")
@pytest.mark.scenario("resume")
async def test_13_resume(tmp_path):
    session = await session_of(tmp_path, [Say("Said before.")])
    await (session.start(make_prompt("once"))).wait()
    again = await open_test_session(ScriptedBackend([]), [], LocalWorkspace(str(tmp_path)), journal=session._journal)
    editor = EditorEnd(tmp_path, SingleSessionManager(again), FakeWorkspaceProvider(again))
    await editor.begin()
    place = {"sessionId": again.id, "cwd": str(tmp_path), "mcpServers": []}
    await editor.peer.request("session/load", place)
    assert [u["content"]["text"] for u in editor.updates_of("user_message_chunk")] == ["once"]
    assert editor.text() == "Said before."
    await editor.aclose()
    assert editor.faults == []


FORM = {"elicitation": {"form": {}}}
WHICH = Question("q", "Which?", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})


@pytest.mark.parametrize(
    ("capabilities", "answer", "reply"),
    [
        (FORM, {"action": "accept", "content": {"name": "that one"}}, QuestionReply("accept", {"name": "that one"})),
        (FORM, {"action": "cancel"}, QuestionReply("cancel")),
        (FORM, None, QuestionReply("decline")),
        (NOTHING, {"action": "accept", "content": {"name": "nobody asked"}}, QuestionReply("decline")),
    ],
)
async def test_question_is_a_form_if_the_editor_supports_forms(tmp_path, capabilities, answer, reply):
    replies = []

    async def act(context, _):
        replies.append(await context.ask(WHICH))

    session = await open_test_session(ScriptedBackend([act]), [], LocalWorkspace(str(tmp_path)))
    async with open_editor(session, tmp_path, capabilities) as editor:

        async def fill(params):
            assert (params["message"], params["mode"]) == ("Which?", "form")
            return answer

        if answer is not None:
            editor.answers["elicitation/create"] = fill
        await editor.prompt(session.id, "go")
        assert replies == [reply]


@pytest.mark.parametrize(
    ("modes", "reply"),
    [({"url": {}}, QuestionReply("accept")), ({"form": {}}, QuestionReply("decline")), ({}, QuestionReply("decline"))],
)
async def test_url_question_is_sent_if_the_editor_supports_it(tmp_path, modes, reply):
    replies = []

    async def act(context, _):
        replies.append(await context.ask(Question("", "Log in", url="https://example.com/", asked_by="files")))

    session = await open_test_session(ScriptedBackend([act]), [], LocalWorkspace(str(tmp_path)))
    async with open_editor(session, tmp_path, {"elicitation": modes}) as editor:

        async def go(params):
            assert (params["message"], params["mode"]) == ("files: Log in", "url")
            assert (params["url"], bool(params["elicitationId"])) == ("https://example.com/", True)
            return {"action": "accept"}

        editor.answers["elicitation/create"] = go
        await editor.prompt(session.id, "go")
        assert replies == [reply]
