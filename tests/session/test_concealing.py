"""What is withheld: the very values, in every event, and nothing that only looks alike."""

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.journal.memory import MemoryJournal
from ostler.session.concealing import WITHHELD, conceal_nothing, concealing
from ostler.session.session import Session
from ostler.testing.fake_tool import FakeTool
from ostler.testing.stagehand import ALLOW_ALL
from ostler.text.withheld import MARK
from ostler.tools.host import LocalToolHost
from ostler.vocabulary.display import Display
from ostler.vocabulary.events import (
    MessageDone,
    Notice,
    TextDelta,
    ToolCalled,
    ToolFinished,
    TurnStarted,
    Unknown,
)
from ostler.vocabulary.message import Called, Message
from ostler.vocabulary.prompt import Prompt, Resource, Text
from ostler.vocabulary.sessions import Steer
from ostler.vocabulary.tools import ToolCall, ToolResult
from ostler.workspace.ground import Workspace

pytestmark = pytest.mark.req("MD-3")

KEY = 'sk-päss"wörd\\0123456789'
CALL = ToolCall("c1", "bash", {"command": f"echo {KEY}", KEY: [KEY]}, raw=KEY)


@pytest.mark.parametrize(
    "event",
    [
        TurnStarted("t", Prompt("p", (Text(f"is {KEY} it?"), Resource("a.txt", f"{KEY}\n{KEY}")))),
        MessageDone(Message("m", (Text(KEY), Called(CALL)))),
        ToolCalled(CALL),
        ToolFinished(ToolResult("c1", "ok", f"<{KEY}>", Display(KEY), data={"out": KEY})),
        TextDelta("m", f"so {KEY}"),
        Notice("info", "in a URL: sk-p%C3%A4ss%22w%C3%B6rd%5C0123456789"),
        Unknown("later", {"told": [KEY]}),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_value_is_taken_out_of_every_event(event):
    concealed = concealing([KEY])(event)
    assert type(concealed) is type(event)
    assert MARK in str(concealed)
    assert "0123456789" not in str(concealed)
    assert concealing([KEY])(concealed) == concealed


def test_what_is_none_stays_as_it_is():
    event = Notice("info", "sk-other-0123456789")
    assert concealing(["sk-planted-0123456789"])(event) is event
    assert concealing(()) is conceal_nothing


@pytest.mark.parametrize("secret", ["tool_finished", "call_id_of_it", "123456789012"])
def test_a_secret_that_is_a_word_of_ours_harms_no_event(secret):
    def event(word):
        data = {"size": 123456789012, word: [word, None, 1.5]}
        return ToolFinished(ToolResult("c1", "ok", f"so {word}", data=data))

    assert concealing([secret])(event(secret)) == event(MARK)
    harmless = ToolFinished(ToolResult("c1", "ok", "so", data={"size": 123456789012}))
    assert concealing([secret])(harmless) is harmless


def test_the_longest_value_goes_first():
    told = concealing(["abcdefghijkl", "abcdefghijklmnop"])(Notice("info", "abcdefghijklmnop!"))
    assert told == Notice("info", f"{MARK}!")


def concealed(folder, backend, tool):
    return Session(
        backend=backend,
        tools=LocalToolHost([tool], Workspace(str(folder))),
        journal=MemoryJournal("session-1"),
        policy=ALLOW_ALL,
        cwd=str(folder),
        conceal=concealing([KEY]),
    )


async def test_a_session_keeps_the_mark_and_says_so_once(tmp_path):
    tool = FakeTool("probe")
    session = concealed(tmp_path, ScriptedBackend([]), tool)
    await session.open(version="1", backend="none", options={})
    for number in range(2):
        await session.call(ToolCall(f"c{number}", "probe", {"subject": KEY}))
    past = list(session.past())
    await session.aclose()
    assert [event for event in past if isinstance(event, Notice)] == [Notice("warning", WITHHELD)]
    assert "0123456789" not in str(past)
    assert len(tool.runs) == 2


async def test_who_thinks_is_told_what_is_kept(tmp_path):
    """A backend that folds no records, as that of another's agent or of a server, gets prompts and results from us."""
    told = []

    async def act(stage, prompt):
        told.extend([prompt.text, (await stage.run_tool(ToolCall("c1", "probe", {}))).for_model])

    async def answer(arguments, context):
        return f"it is {KEY}"

    backend = ScriptedBackend([act])
    session = concealed(tmp_path, backend, FakeTool("probe", answer))
    await session.open(version="1", backend="other", options={})
    await session.start(Prompt("p", (Text(f"use {KEY}"),))).wait()
    assert await session.apply(Steer(Prompt("q", (Text(f"and {KEY}"),))))
    await session.aclose()
    assert told == [f"use {MARK}", f"it is {MARK}"]
    assert [change.prompt.text for change in backend.changes] == [f"and {MARK}"]
