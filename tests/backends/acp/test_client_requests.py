"""An agent's requests with arbitrary parameters: a response or a proper error, never an internal failure."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.backends.acp.client_requests import ClientRequestHandler, ClientServices
from ostler.backends.acp.update_translator import UpdateTranslator
from ostler.core.errors import Fault, ToolError
from ostler.core.permission import Decision, Need, Question, QuestionReply
from ostler.core.tools import ToolResult
from ostler.wire.acp import NOT_FOUND
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.acp_updates import decode_update
from ostler.wire.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError


class FakeContext:
    """Allows everything, answers everything, and records the calls."""

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
        raise ToolError("no such terminal", code="not_found")

    wait = kill = release = output


async def predict_needs(kind, title, paths, command, edits, hints):
    return (Need("agent", title),)


def make_handler(context, **services):
    translator = UpdateTranslator("x", "/w", context.emit, AcpObserver())
    return ClientRequestHandler(
        context, "/w", translator, ClientServices(predict_needs, NoTerminals(), **services), AcpObserver()
    )


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
@examples(80)
def test_any_parameters_get_a_response_or_an_error(method, params):
    async def ask():
        try:
            answer = await make_handler(FakeContext(), answers={"path": "1"}).handle_request(method, params)
        except RpcError as error:
            assert error.message
        else:
            assert isinstance(answer, dict)

    asyncio.run(ask())


@given(st.lists(st.dictionaries(st.sampled_from([*NAMES, "sessionUpdate", "entries", "status"]), VALUES, max_size=6)))
@examples(60)
def test_any_updates_can_be_translated(updates):
    kinds = ["tool_call", "tool_call_update", "plan", "usage_update", "config_option_update", "agent_message_chunk"]
    translator = UpdateTranslator("x", "/w", lambda event: None, AcpObserver())
    translator.begin_turn()
    for number, update in enumerate(updates):
        translator.translate(decode_update({**update, "sessionUpdate": kinds[number % len(kinds)]}))
    translator.finish_turn()


async def refusal(context, method, params, **services):
    with pytest.raises(RpcError) as caught:
        await make_handler(context, **services).handle_request(method, params)
    return caught.value


async def test_refusals_have_error_codes():
    missing = FakeContext("failed", Fault("not_found", "a.txt: there is no such file"))
    error = await refusal(missing, "fs/read_text_file", {"sessionId": "s", "path": "/w/a.txt"})
    assert (error.code, error.message) == (-32002, "a.txt: there is no such file")
    assert (
        await refusal(FakeContext("denied"), "fs/read_text_file", {"sessionId": "s", "path": "/w/a"})
    ).code == -32603
    assert (
        await refusal(FakeContext(), "fs/write_text_file", {"sessionId": "s", "path": "/w/a", "content": 7})
    ).code == -32602
    assert (await refusal(FakeContext(), "terminal/output", {"sessionId": "s", "terminalId": "t"})).code == -32002
    for method, services in (
        ("fs/read_text_file", {"files": False}),
        ("terminal/create", {"terminal": False}),
        ("x/y", {}),
    ):
        with pytest.raises(RpcError) as caught:
            make_handler(FakeContext(), **services).handle_request(method, {})
        assert caught.value.code == METHOD_NOT_FOUND


CALL = {"toolCallId": "c"}
OPTION = {"optionId": "o", "name": "n", "kind": "allow_once"}


@pytest.mark.req("AC-5")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fs/read_text_file", {}),
        ("fs/read_text_file", {"path": ""}),
        ("fs/read_text_file", {"path": None}),
        ("fs/read_text_file", {"path": ["/w/a"]}),
        ("fs/read_text_file", {"path": "/w/a", "line": -1}),
        ("fs/read_text_file", {"path": "/w/a", "limit": "9"}),
        ("fs/write_text_file", {"path": "/w/a"}),
        ("fs/write_text_file", {"content": "x"}),
        ("fs/write_text_file", {"path": "/w/a", "content": None}),
        ("terminal/create", {}),
        ("terminal/create", {"command": ""}),
        ("terminal/create", {"command": "ls", "args": "-l"}),
        ("terminal/create", {"command": "ls", "env": [{"name": "A"}]}),
        ("terminal/create", {"command": "ls", "outputByteLimit": -1}),
        *((f"terminal/{name}", {}) for name in ("output", "wait_for_exit", "kill", "release")),
        *((f"terminal/{name}", {"terminalId": 7}) for name in ("output", "wait_for_exit", "kill", "release")),
        ("session/request_permission", {}),
        ("session/request_permission", {"toolCall": CALL}),
        ("session/request_permission", {"toolCall": {}, "options": [OPTION]}),
        ("session/request_permission", {"toolCall": CALL, "options": [{"optionId": "o"}]}),
        ("session/request_permission", {"toolCall": CALL, "options": OPTION}),
        ("elicitation/create", {}),
        ("elicitation/create", {"message": 5}),
    ],
)
async def test_malformed_parameters_are_answered_with_invalid_params(method, params):
    context = FakeContext()
    error = await refusal(context, method, {"sessionId": "s", **params})
    assert error.code == -32602
    assert error.message.startswith("Invalid params: ")
    assert context.calls == []


@pytest.mark.parametrize("code", ["bad_path", "bad_arguments"])
async def test_argument_that_a_tool_rejects_is_an_invalid_parameter(code):
    context = FakeContext("failed", Fault(code, "the path contains a zero byte"))
    assert (await refusal(context, "fs/read_text_file", {"sessionId": "s", "path": "/w/\0"})).code == -32602


async def test_null_counts_as_an_absent_parameter():
    context = FakeContext()
    params = {"sessionId": "s", "path": "/w/a", "line": None, "_meta": 5}
    await make_handler(context).handle_request("fs/read_text_file", params)
    assert context.calls[0].arguments == {"path": "/w/a"}


async def test_observer_distinguishes_refusal_and_failure():
    reports = []

    class RecordingObserver(AcpObserver):
        def on_refused(self, operation, subject, reason):
            reports.append("refused")

        def on_failed(self, operation, subject, reason):
            reports.append("failed")

    for status in ("denied", "failed"):
        context = FakeContext(status)
        translator = UpdateTranslator("x", "/w", context.emit, AcpObserver())
        handler = ClientRequestHandler(
            context, "/w", translator, ClientServices(predict_needs, NoTerminals()), RecordingObserver()
        )
        with pytest.raises(RpcError):
            await handler.handle_request("fs/read_text_file", {"sessionId": "s", "path": "/w/a"})
    assert reports == ["refused", "failed"]


@pytest.mark.req("PM-4")
async def test_edited_paths_are_distinguished_from_locations():
    received = []

    async def record(*arguments):
        received.append(arguments)
        return ()

    context = FakeContext()
    handler = ClientRequestHandler(
        context,
        "/w",
        UpdateTranslator("x", "/w", context.emit, AcpObserver()),
        ClientServices(record, NoTerminals()),
        AcpObserver(),
    )
    diff = {"type": "diff", "path": "/w/b", "oldText": None, "newText": "b"}
    call = {"toolCallId": "c", "title": "t", "kind": "think", "locations": [{"path": "/w/a"}], "content": [diff]}
    await handler.handle_request("session/request_permission", {"sessionId": "s", "toolCall": call, "options": []})
    assert received == [("think", "t", ("/w/a", "/w/b"), "", ("/w/b",), ())]


async def test_meta_cannot_override_parameters():
    context = FakeContext()
    await make_handler(context).handle_request(
        "fs/read_text_file", {"sessionId": "s", "path": "/w/a", "_meta": {"path": "/etc/passwd", "line": 3}}
    )
    assert context.calls[0].arguments == {"path": "/w/a"}
    assert context.calls[0].origin == "protocol"


async def test_url_elicitation_has_url_and_agent_name():
    questions = []

    class AskedContext(FakeContext):
        async def ask(self, question):
            questions.append(question)
            return QuestionReply("accept")

    params = {"sessionId": "s", "mode": "url", "message": "Log in", "url": "https://example.com/", "elicitationId": "e"}
    assert await make_handler(AskedContext()).handle_request("elicitation/create", params) == {"action": "accept"}
    assert questions == [Question("", "Log in", None, "https://example.com/", "x")]


@pytest.mark.req("AC-1")
async def test_allowed_request_without_a_matching_option_is_reported_as_cancelled():
    decisions = []

    class Observer(AcpObserver):
        def on_decision(self, request, decision):
            decisions.append(decision.answer)

    async def no_needs(*arguments):
        return ()

    context = FakeContext()
    observer = Observer()
    handler = ClientRequestHandler(
        context,
        "/w",
        UpdateTranslator("x", "/w", context.emit, observer),
        ClientServices(no_needs, NoTerminals()),
        observer,
    )
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "t"}}
    reject = [{"optionId": "no", "name": "No", "kind": "reject_once"}]
    for options in ([], reject):
        outcome = await handler.handle_request("session/request_permission", {**params, "options": options})
        assert outcome == {"outcome": {"outcome": "cancelled"}}
    assert decisions == ["cancel", "cancel"]


MISSING = {"status": "failed", "fault": Fault("not_found", "no such file")}


@pytest.mark.req("AC-7")
@pytest.mark.parametrize(
    ("missing_files_are_empty", "context", "outcome"),
    [
        (True, FakeContext(**MISSING), {"content": ""}),
        (False, FakeContext(**MISSING), NOT_FOUND),
        (True, FakeContext("denied", Fault("denied", "no")), INTERNAL_ERROR),
        (True, FakeContext("failed", Fault("not_text", "no text")), INTERNAL_ERROR),
    ],
)
async def test_missing_file_is_an_error_unless_the_agent_expects_empty_content(
    missing_files_are_empty, context, outcome
):
    handler = make_handler(context)
    handler.missing_files_are_empty = missing_files_are_empty
    try:
        assert await handler.handle_request("fs/read_text_file", {"sessionId": "s", "path": "/w/new"}) == outcome
    except RpcError as error:
        assert error.code == outcome
