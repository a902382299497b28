"""Masking of secrets: exact values, in every event, and nothing that only looks similar."""

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.display import Display
from ostler.core.events import (
    MessageDone,
    Notice,
    TextDelta,
    ToolCalled,
    ToolFinished,
    TurnStarted,
    UnknownEvent,
)
from ostler.core.message import CallPart, Message
from ostler.core.prompt import EmbeddedResource, Prompt, TextContent
from ostler.core.sessions import Steer
from ostler.core.tools import ToolCall, ToolResult
from ostler.journal.memory_journal import MemoryJournal
from ostler.session.masking import MASKED_NOTICE, MaskSecrets, SessionMasking
from ostler.session.session import LocalSession
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL
from ostler.text.secret_masker import MASK_MARKER
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("MD-3")

KEY = 'sk-päss"wörd\\0123456789'
CALL = ToolCall("c1", "bash", {"command": f"echo {KEY}", KEY: [KEY]}, raw=KEY)


@pytest.mark.parametrize(
    "event",
    [
        TurnStarted("t", Prompt("p", (TextContent(f"is {KEY} it?"), EmbeddedResource("a.txt", f"{KEY}\n{KEY}")))),
        MessageDone(Message("m", (TextContent(KEY), CallPart(CALL)))),
        ToolCalled(CALL),
        ToolFinished(ToolResult("c1", "ok", f"<{KEY}>", Display(KEY), data={"out": KEY})),
        TextDelta("m", f"so {KEY}"),
        Notice("info", "in a URL: sk-p%C3%A4ss%22w%C3%B6rd%5C0123456789"),
        UnknownEvent("later", {"text": [KEY]}),
    ],
    ids=lambda event: type(event).__name__,
)
def test_secret_is_masked_in_every_event(event):
    masked = MaskSecrets([KEY])(event)
    assert type(masked) is type(event)
    assert MASK_MARKER in str(masked)
    assert "0123456789" not in str(masked)
    assert MaskSecrets([KEY])(masked) == masked


def test_event_without_secret_is_unchanged():
    event = Notice("info", "sk-other-0123456789")
    assert MaskSecrets(["sk-planted-0123456789"])(event) is event
    assert MaskSecrets()(event) is event


@pytest.mark.parametrize("secret", ["tool_finished", "call_id_of_it", "123456789012"])
def test_secret_equal_to_field_name_does_not_break_event(secret):
    def event(text):
        data = {"size": 123456789012, text: [text, None, 1.5]}
        return ToolFinished(ToolResult("c1", "ok", f"so {text}", data=data))

    assert MaskSecrets([secret])(event(secret)) == event(MASK_MARKER)
    harmless = ToolFinished(ToolResult("c1", "ok", "so", data={"size": 123456789012}))
    assert MaskSecrets([secret])(harmless) is harmless


def test_longest_secret_is_masked_first():
    received = MaskSecrets(["abcdefghijkl", "abcdefghijklmnop"])(Notice("info", "abcdefghijklmnop!"))
    assert received == Notice("info", f"{MASK_MARKER}!")


def masked_session(folder, backend, tool):
    return LocalSession(
        backend=backend,
        tools=LocalToolHost([tool], LocalWorkspace(str(folder))),
        journal=MemoryJournal("session-1"),
        policy=ALLOW_ALL,
        cwd=str(folder),
        mask=MaskSecrets([KEY]),
    )


async def test_session_saves_marker_and_reports_masking_once(tmp_path):
    tool = FakeTool("probe")
    session = masked_session(tmp_path, ScriptedBackend([]), tool)
    await session.open(version="1", backend="none", options={})
    for number in range(2):
        await session.call(ToolCall(f"c{number}", "probe", {"subject": KEY}))
    events = list(session.events())
    await session.aclose()
    assert [event for event in events if isinstance(event, Notice)] == [Notice("warning", MASKED_NOTICE)]
    assert "0123456789" not in str(events)
    assert len(tool.runs) == 2


@pytest.mark.invariant("J5")
async def test_backend_gets_masked_prompt_and_result(tmp_path):
    """A backend that does not build its history from the records gets prompts and results directly."""
    received = []

    async def act(context, prompt):
        received.extend([prompt.text, (await context.run_tool(ToolCall("c1", "probe", {}))).for_model])

    async def answer(arguments, context):
        return f"it is {KEY}"

    backend = ScriptedBackend([act])
    session = masked_session(tmp_path, backend, FakeTool("probe", answer))
    await session.open(version="1", backend="other", options={})
    await session.start(Prompt("p", (TextContent(f"use {KEY}"),))).wait()
    assert await session.apply(Steer(Prompt("q", (TextContent(f"and {KEY}"),))))
    await session.aclose()
    assert received == [f"use {MASK_MARKER}", f"it is {MASK_MARKER}"]
    assert [change.prompt.text for change in backend.changes] == [f"and {MASK_MARKER}"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("text", [f"a {KEY} b", f"a sk-x {KEY[:9]} {KEY}", f"a {KEY[:5]}\x1b[31m{KEY[5:]}\x1b[0m b"])
@pytest.mark.invariant("J5")
def test_secret_in_two_deltas_is_masked(text, size):
    masking = SessionMasking(MaskSecrets([KEY]))
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    events = [masking.apply(TextDelta("m", piece)) for piece in [*pieces, " end"]]
    shown = "".join(event.text for event in events if event)
    assert (
        shown.replace("\x1b[31m", "").replace("\x1b[0m", "")
        == text.replace("\x1b[31m", "").replace("\x1b[0m", "").replace(KEY, MASK_MARKER) + " end"
    )
    assert masking.take_notice() == Notice("warning", MASKED_NOTICE)
    assert masking.take_notice() is None
