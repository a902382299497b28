"""How the embedded model is spoken to and understood."""

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
OFFERED = [ToolSpec(name, "other", "A very long description. " * 20, {"type": "object"}) for name in NAMES]
TOOLS = tuple(embedded_tools(OFFERED))
TASK = UserMessage((TextContent("mend it"),))
FAILURE = 'File "test_a.py", line 3\n    self.assertEqual(f(1), 2)\nAssertionError: 1 != 2\nFAILED\n[exit 1]'


def turn(call_id, tool, status, told, **arguments):
    call = ToolCall(call_id, tool, arguments)
    return (
        AssistantMessage(Message("m", (TextContent("I look."), CallPart(call)))),
        ToolResultsMessage((ToolResult(call_id, status, told),)),
    )


def words(history):
    """What the model is told last."""
    return encode_request(ModelRequest("", history, TOOLS)).history[-1].blocks[0].text


def heard(*pieces):
    ear = StepParser(CallIds())
    return [chunk for piece in pieces for chunk in ear.feed(piece)] + ear.finish()


def test_few_tools_are_offered_and_in_few_words():
    assert [tool.name for tool in TOOLS] == ["bash", "read", "edit", "write", "grep"]
    assert len(TOOLS) == MAX_TOOLS
    assert max(len(tool.description) for tool in TOOLS) < 60


def test_without_a_shell_others_take_its_place():
    assert [tool.name for tool in embedded_tools([tool for tool in OFFERED if tool.name != "bash"])] == [
        "read", "edit", "write", "grep", "list",
    ]  # fmt: skip


def test_prompt_and_tools_stay_below_five_hundred_tokens():
    sent = encode_request(ModelRequest(embedded_prompt(), (), TOOLS))
    assert len(sent.system.encode()) < 500 * 2.9  # its tokens are short: JSON and code
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
def test_the_schema_takes_whole_steps_only(step, valid):
    validator = jsonschema.Draft202012Validator(step_schema(ModelRequest("", (TASK,), TOOLS)))
    assert validator.is_valid(step) is valid


def test_the_schema_names_say_and_tool_first_so_that_it_thinks_before_it_acts():
    for branch in step_schema(ModelRequest("", (TASK,), TOOLS))["anyOf"]:
        assert list(branch["properties"])[:2] == ["say", "tool"]


def test_a_step_is_words_and_a_call():
    chunks = heard('{"say": "I lo', 'ok.", "tool": "re', 'ad", "path": "a\\n.py"}')
    assert chunks == [TextChunk("I lo"), TextChunk("ok."), CallChunk("call_0", "read", '{"path": "a\\n.py"}')]


def test_the_last_step_is_words_alone():
    assert heard('{"say": "It works.", "tool": "done"}') == [TextChunk("It works.")]


@pytest.mark.parametrize(
    ("reply", "chunks"),
    [
        ("plain words", [TextChunk("plain words")]),
        ("", []),
        ("[1, 2]", [TextChunk("[1, 2]")]),
        ('{"say": "cut in the mid', [TextChunk("cut in the mid")]),
        ('{"say": "half \\ud83d', [TextChunk("half ")]),
        ('{"say": "x\\u00', [TextChunk("x")]),
        ('{"tool": "bash"}', [CallChunk("call_0", "bash", "{}")]),
        ("{" * 5000, [TextChunk("{" * 5000)]),
    ],
)
def test_what_is_no_step_costs_nothing_but_itself(reply, chunks):
    assert heard(reply) == chunks


@given(st.text(), st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_words_come_through_whole_however_they_are_cut(said, sizes):
    reply, pieces, at = json.dumps({"say": said, "tool": "done"}), [], 0
    while at < len(reply):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(reply[at : at + size])
        at += size
    told = "".join(chunk.text for chunk in heard(*pieces))
    assert told.encode("utf-16", "surrogatepass") == said.encode("utf-16", "surrogatepass")


def test_a_request_is_a_prefix_of_the_next():
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


def test_its_own_step_goes_back_as_it_wrote_it():
    step = '{"say": "I look.", "tool": "read", "path": "ä.py"}'
    text, call = heard(step)
    said = AssistantMessage(
        Message("m", (TextContent(text.text), CallPart(ToolCall("1", call.tool, json.loads(call.arguments)))))
    )
    assert encode_request(ModelRequest("", (said,), TOOLS)).history[0].message.text == step


@pytest.mark.parametrize(
    ("tool", "status", "told", "arguments", "hint"),
    [
        ("bash", "ok", "OK", {"command": "t"}, "`done`"),
        ("bash", "failed", FAILURE, {"command": "t"}, "read the code"),
        ("edit", "ok", "changed", {"path": "a.py"}, "run the test"),
        ("edit", "failed", "not there", {"path": "a.py"}, "copied exactly"),
        ("read", "ok", "     1\tfrom src.a import f\n     2\timport unittest", {"path": "t/test_a.py"}, "src/a.py."),
        ("read", "ok", "     1\tassert 1", {"path": "a_test.py"}, "code that it tests."),
    ],
)
def test_each_result_says_what_comes_next(tool, status, told, arguments, hint):
    assert hint in words((TASK, *turn("1", tool, status, told, **arguments)))


def test_a_file_is_shown_without_line_numbers_and_with_what_still_fails():
    history = (TASK, *turn("1", "bash", "failed", FAILURE, command="t"))
    shown = words((*history, *turn("2", "read", "ok", "     1\tdef f(n):\n     2\t    return n", path="a.py")))
    assert "```\ndef f(n):\n    return n\n```" in shown
    assert "self.assertEqual(f(1), 2)\nAssertionError: 1 != 2\nSo a line" in shown


def test_a_long_result_is_cut_in_the_middle():
    shown = words((TASK, *turn("1", "bash", "ok", "x" * 100_000, command="t")))
    assert len(shown) < 4200


def test_pictures_and_system_messages_become_words():
    history = (UserMessage((ImageContent("aGk=", "image/png"),)), SystemMessage("mind the time"))
    told = encode_request(ModelRequest("", history, TOOLS)).history
    assert told == (UserMessage((TextContent("[a picture]"),)), UserMessage((TextContent("mind the time"),)))


def test_a_step_that_came_to_nothing_is_not_simply_repeated():
    failing = turn("1", "bash", "failed", FAILURE, command="t")
    failed = turn("2", "edit", "failed", "not there", path="a")
    temperatures = [
        encode_request(ModelRequest("", history, TOOLS)).temperature
        for history in ((TASK,), (TASK, *failing), (TASK, *failing, *failed), (TASK, *failed, *failing))
    ]
    assert temperatures == [None, None, STUCK_TEMPERATURE, None]


def test_while_a_command_fails_there_is_more_to_do_but_not_for_ever():
    failed = (TASK, *turn("1", "bash", "failed", FAILURE, command="t"))
    assert may_end((TASK,))
    assert not may_end(failed)
    assert not may_end((*failed, *turn("2", "edit", "ok", "changed", path="a")))
    assert may_end((*failed, *turn("2", "bash", "ok", "OK", command="t")))
    assert may_end((*failed, *(turn("2", "read", "ok", "a", path="a") * MAX_FAILING_STEPS)))
    assert may_end((*failed, UserMessage((TextContent("why?"),))))
    assert "done" not in json.dumps(step_schema(ModelRequest("", failed, TOOLS)))
