"""What an agent may ask for, with anything as its parameters: an answer or a proper error, never a failure of ours."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.backends.acp.client_requests import ClientRequestHandler, ClientServices
from ostler.backends.acp.observer import AcpObserver
from ostler.backends.acp.update_translator import UpdateTranslator
from ostler.core.errors import Fault, ToolError
from ostler.core.permission import Decision, Need, Question, QuestionReply
from ostler.core.tools import ToolResult
from ostler.wire.acp_updates import decode_update
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, RpcError


class FakeStage:
    """Allows everything, answers everything, and notes the calls."""

    def __init__(self, status="ok", fault=None):
        self.calls = []
        self._status, self._fault = status, fault

    def emit(self, event):
        pass

    async def run_tool(self, call):
        self.calls.append(call)
        return ToolResult(call.id, self._status, "no", data={"content": "x", "terminalId": "t"}, fault=self._fault)

    async def decide(self, permission):
        return Decision("allow")

    async def ask(self, question):
        return QuestionReply("decline")


class NoTerminals:
    async def output(self, terminal_id):
        raise ToolError("there is no such terminal", code="not_found")

    wait = kill = release = output


async def foresee(kind, title, paths, command, edits):
    return (Need("agent", title),)


def serving(context, **powers):
    teller = UpdateTranslator("x", "/w", context.emit, AcpObserver())
    return ClientRequestHandler(context, "/w", teller, ClientServices(foresee, NoTerminals(), **powers), AcpObserver())


METHODS = [
    *("session/request_permission", "fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output"),
    *("terminal/wait_for_exit", "terminal/kill", "terminal/release", "elicitation/create"),
]
NAMES = [
    *("sessionId", "path", "content", "line", "limit", "command", "args", "env", "cwd", "terminalId", "options"),
    *(
        "toolCall",
        "toolCallId",
        "message",
        "requestedSchema",
        "properties",
        "mode",
        "_meta",
        "kind",
        "rawInput",
        "type",
    ),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.req("AC-5")
@given(st.sampled_from(METHODS), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8))
@settings(max_examples=80, deadline=None)
def test_any_parameters_get_an_answer_or_a_proper_error(method, params):
    async def ask():
        try:
            answer = await serving(FakeStage(), answers={"path": "1"}).handle_request(method, params)
        except RpcError as error:
            assert error.message
        else:
            assert isinstance(answer, dict)

    asyncio.run(ask())


@given(st.lists(st.dictionaries(st.sampled_from([*NAMES, "sessionUpdate", "entries", "status"]), VALUES, max_size=6)))
@settings(max_examples=60, deadline=None)
def test_any_updates_become_events_or_nothing(updates):
    kinds = ["tool_call", "tool_call_update", "plan", "usage_update", "config_option_update", "agent_message_chunk"]
    teller = UpdateTranslator("x", "/w", lambda event: None, AcpObserver())
    teller.begin_turn()
    for number, update in enumerate(updates):
        teller.translate(decode_update({**update, "sessionUpdate": kinds[number % len(kinds)]}))
    teller.finish_turn()


async def refusal(context, method, params, **powers):
    with pytest.raises(RpcError) as caught:
        await serving(context, **powers).handle_request(method, params)
    return caught.value


async def test_refusals_have_codes_an_agent_can_use():
    missing = FakeStage("failed", Fault("not_found", "a.txt: there is no such file"))
    error = await refusal(missing, "fs/read_text_file", {"sessionId": "s", "path": "/w/a.txt"})
    assert (error.code, error.message) == (-32002, "a.txt: there is no such file")
    assert (await refusal(FakeStage("denied"), "fs/read_text_file", {"path": "/w/a"})).code == -32603
    assert (await refusal(FakeStage(), "fs/write_text_file", {"path": "/w/a", "content": 7})).code == -32602
    assert (await refusal(FakeStage(), "terminal/output", {"terminalId": "t"})).code == -32002
    for method, powers in (
        ("fs/read_text_file", {"files": False}),
        ("terminal/create", {"terminal": False}),
        ("x/y", {}),
    ):
        with pytest.raises(RpcError) as caught:
            serving(FakeStage(), **powers).handle_request(method, {})
        assert caught.value.code == METHOD_NOT_FOUND


async def test_whoever_watches_can_tell_a_refusal_from_a_failure():
    heard = []

    class Listening(AcpObserver):
        def on_refused(self, operation, what, why):
            heard.append("refused")

        def on_failed(self, operation, what, why):
            heard.append("failed")

    for status in ("denied", "failed"):
        context = FakeStage(status)
        teller = UpdateTranslator("x", "/w", context.emit, AcpObserver())
        desk = ClientRequestHandler(context, "/w", teller, ClientServices(foresee, NoTerminals()), Listening())
        with pytest.raises(RpcError):
            await desk.handle_request("fs/read_text_file", {"path": "/w/a"})
    assert heard == ["refused", "failed"]


@pytest.mark.req("PM-4")
async def test_the_changes_a_call_shows_are_told_apart_from_its_places():
    heard = []

    async def listen(*told):
        heard.append(told)
        return ()

    context = FakeStage()
    desk = ClientRequestHandler(
        context,
        "/w",
        UpdateTranslator("x", "/w", context.emit, AcpObserver()),
        ClientServices(listen, NoTerminals()),
        AcpObserver(),
    )
    diff = {"type": "diff", "path": "/w/b", "oldText": None, "newText": "b"}
    call = {"toolCallId": "c", "title": "t", "kind": "think", "locations": [{"path": "/w/a"}], "content": [diff]}
    await desk.handle_request("session/request_permission", {"sessionId": "s", "toolCall": call, "options": []})
    assert heard == [("think", "t", ("/w/a", "/w/b"), "", ("/w/b",))]


async def test_meta_cannot_forge_what_is_asked_for():
    context = FakeStage()
    await serving(context).handle_request(
        "fs/read_text_file", {"path": "/w/a", "_meta": {"path": "/etc/passwd", "line": 3}}
    )
    assert context.calls[0].arguments == {"path": "/w/a"}
    assert context.calls[0].origin == "protocol"


async def test_an_address_is_told_apart_from_the_words_and_with_the_agents_name():
    asked = []

    class Asked(FakeStage):
        async def ask(self, question):
            asked.append(question)
            return QuestionReply("accept")

    params = {"sessionId": "s", "mode": "url", "message": "Log in", "url": "https://example.com/", "elicitationId": "e"}
    assert await serving(Asked()).handle_request("elicitation/create", params) == {"action": "accept"}
    assert asked == [Question("", "Log in", None, "https://example.com/", "x")]
