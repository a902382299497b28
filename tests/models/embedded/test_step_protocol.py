"""The step format of the embedded model: requests, schema and parsing."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.core.message import CallPart, Message
from ostler.core.prompt import ImageContent, TextContent
from ostler.core.tools import ToolCall, ToolResult, ToolSpec
from ostler.models.call_ids import CallIds
from ostler.models.embedded.step_history import MAX_FAILING_STEPS, may_end
from ostler.models.embedded.step_protocol import (
    MAX_TOOLS,
    STUCK_TEMPERATURE,
    StepParser,
    embedded_prompt,
    embedded_tools,
    encode_request,
    step_schema,
)
from ostler.models.model_types import (
    AssistantMessage,
    CallChunk,
    ModelRequest,
    SystemMessage,
    TextChunk,
    ToolResultsMessage,
    UserMessage,
)

pytestmark = pytest.mark.req("MD-10")

NAMES = ("task", "list", "grep", "write", "edit", "read", "bash", "todowrite")
ALL_TOOLS = [ToolSpec(name, "other", "A very long description. " * 20, {"type": "object"}) for name in NAMES]
TOOLS = tuple(embedded_tools(ALL_TOOLS))
TASK = UserMessage((TextContent("fix it"),))
FAILURE = 'File "test_a.py", line 3\n    self.assertEqual(f(1), 2)\nAssertionError: 1 != 2\nFAILED\n[exit 1]'


def turn(call_id, tool, status, output, **arguments):
    call = ToolCall(call_id, tool, arguments)
    return (
        AssistantMessage(Message("m", (TextContent("I look."), CallPart(call)))),
        ToolResultsMessage((ToolResult(call_id, status, output),)),
    )


def last_message(history):
    """Return the text of the last message sent to the model."""
    return encode_request(ModelRequest("", history, TOOLS)).history[-1].blocks[0].text


def parse(*parts):
    parser = StepParser(CallIds())
    return [chunk for part in parts for chunk in parser.feed(part)] + parser.finish()


def test_few_tools_with_short_descriptions_are_offered():
    assert [tool.name for tool in TOOLS] == ["bash", "read", "edit", "write", "grep"]
    assert len(TOOLS) == MAX_TOOLS
    assert max(len(tool.description) for tool in TOOLS) < 60


def test_other_tools_replace_a_missing_shell():
    assert [tool.name for tool in embedded_tools([tool for tool in ALL_TOOLS if tool.name != "bash"])] == [
        "read", "edit", "write", "grep", "list",
    ]  # fmt: skip


def test_prompt_and_tools_take_less_than_500_tokens():
    sent = encode_request(ModelRequest(embedded_prompt(), (), TOOLS))
    assert len(sent.system.encode()) < 500 * 2.9  # JSON and code have short tokens
    assert sent.tools == ()


@pytest.mark.parametrize(
    ("step", "valid"),
    [
        ({"say": "a", "tool": "bash", "command": "ls"}, True),
        ({"say": "a", "tool": "done"}, True),
        ({"say": "a", "tool": "bash"}, False),
        ({"say": "a", "tool": "bash", "command": "ls", "extra": 1}, False),
        ({"say": "a", "tool": "rm", "command": "ls"}, False),
        ({"tool": "done"}, False),
    ],
)
def test_schema_accepts_only_complete_steps(step, valid):
    validator = jsonschema.Draft202012Validator(step_schema(ModelRequest("", (TASK,), TOOLS)))
    assert validator.is_valid(step) is valid


def test_schema_puts_say_and_tool_first():
    for branch in step_schema(ModelRequest("", (TASK,), TOOLS))["anyOf"]:
        assert list(branch["properties"])[:2] == ["say", "tool"]


def test_step_gives_text_and_call():
    chunks = parse('{"say": "I lo', 'ok.", "tool": "re', 'ad", "path": "a\\n.py"}')
    assert chunks == [TextChunk("I lo"), TextChunk("ok."), CallChunk("call_0", "read", '{"path": "a\\n.py"}')]


def test_done_step_gives_only_text():
    assert parse('{"say": "It works.", "tool": "done"}') == [TextChunk("It works.")]


@pytest.mark.parametrize(
    ("reply", "chunks"),
    [
        ("plain text", [TextChunk("plain text")]),
        ("", []),
        ("[1, 2]", [TextChunk("[1, 2]")]),
        ('{"say": "cut in the mid', [TextChunk("cut in the mid")]),
        ('{"say": "half \\ud83d', [TextChunk("half ")]),
        ('{"say": "x\\u00', [TextChunk("x")]),
        ('{"tool": "bash"}', [CallChunk("call_0", "bash", "{}")]),
        ("{" * 5000, [TextChunk("{" * 5000)]),
    ],
)
def test_invalid_step_is_returned_as_text(reply, chunks):
    assert parse(reply) == chunks


@given(st.text(), st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_text_is_complete_for_any_chunking(text, sizes):
    reply, parts, start = json.dumps({"say": text, "tool": "done"}), [], 0
    while start < len(reply):
        size = sizes[len(parts) % len(sizes)]
        parts.append(reply[start : start + size])
        start += size
    parsed = "".join(chunk.text for chunk in parse(*parts))
    assert parsed.encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")


def test_request_is_a_prefix_of_the_next():
    history = (TASK,)
    before = encode_request(ModelRequest("s", history, TOOLS))
    for more in (
        turn("1", "bash", "failed", FAILURE, command="test"),
        turn("2", "read", "ok", "     1\timport a", path="test_a.py"),
        turn("3", "edit", "ok", "changed", path="a.py", old="1", new="2"),
        turn("4", "bash", "ok", "OK", command="test"),
    ):
        history += more
        after = encode_request(ModelRequest("s", history, TOOLS))
        assert (after.system, after.history[: len(before.history)]) == (before.system, before.history)
        before = after


def test_steps_are_sent_back_unchanged():
    step = '{"say": "I look.", "tool": "read", "path": "ä.py"}'
    text, call = parse(step)
    message = AssistantMessage(
        Message("m", (TextContent(text.text), CallPart(ToolCall("1", call.tool, json.loads(call.arguments)))))
    )
    assert encode_request(ModelRequest("", (message,), TOOLS)).history[0].message.text == step


@pytest.mark.parametrize(
    ("tool", "status", "output", "arguments", "hint"),
    [
        ("bash", "ok", "OK", {"command": "t"}, "`done`"),
        ("bash", "failed", FAILURE, {"command": "t"}, "read the code"),
        ("edit", "ok", "changed", {"path": "a.py"}, "run the test"),
        ("edit", "failed", "not there", {"path": "a.py"}, "copied exactly"),
        ("read", "ok", "     1\tfrom src.a import f\n     2\timport unittest", {"path": "t/test_a.py"}, "src/a.py."),
        ("read", "ok", "     1\tassert 1", {"path": "a_test.py"}, "code that it tests."),
    ],
)
def test_each_result_ends_with_a_hint(tool, status, output, arguments, hint):
    assert hint in last_message((TASK, *turn("1", tool, status, output, **arguments)))


def test_file_has_no_line_numbers_and_repeats_the_failure():
    history = (TASK, *turn("1", "bash", "failed", FAILURE, command="t"))
    message = last_message((*history, *turn("2", "read", "ok", "     1\tdef f(n):\n     2\t    return n", path="a.py")))
    assert "```\ndef f(n):\n    return n\n```" in message
    assert "self.assertEqual(f(1), 2)\nAssertionError: 1 != 2\nSo a line" in message


def test_long_result_is_truncated_in_the_middle():
    message = last_message((TASK, *turn("1", "bash", "ok", "x" * 100_000, command="t")))
    assert len(message) < 4200


def test_images_and_system_messages_become_text():
    history = (UserMessage((ImageContent("aGk=", "image/png"),)), SystemMessage("mind the time"))
    messages = encode_request(ModelRequest("", history, TOOLS)).history
    assert messages == (UserMessage((TextContent("[a picture]"),)), UserMessage((TextContent("mind the time"),)))


def test_failed_step_raises_the_temperature():
    failing = turn("1", "bash", "failed", FAILURE, command="t")
    failed = turn("2", "edit", "failed", "not there", path="a")
    temperatures = [
        encode_request(ModelRequest("", history, TOOLS)).temperature
        for history in ((TASK,), (TASK, *failing), (TASK, *failing, *failed), (TASK, *failed, *failing))
    ]
    assert temperatures == [None, None, STUCK_TEMPERATURE, None]


def test_turn_may_not_end_while_a_command_fails_up_to_a_limit():
    failed = (TASK, *turn("1", "bash", "failed", FAILURE, command="t"))
    assert may_end((TASK,))
    assert not may_end(failed)
    assert not may_end((*failed, *turn("2", "edit", "ok", "changed", path="a")))
    assert may_end((*failed, *turn("2", "bash", "ok", "OK", command="t")))
    assert may_end((*failed, *(turn("2", "read", "ok", "a", path="a") * MAX_FAILING_STEPS)))
    assert may_end((*failed, UserMessage((TextContent("why?"),))))
    assert "done" not in json.dumps(step_schema(ModelRequest("", failed, TOOLS)))
