"""Output of a model during an approval request is shown after the answer."""

import pytest
from tests.fake_services import FakeServices

from ostler.backends.engine.backend import Engine
from ostler.core.events import Envelope, PermissionAsked, PermissionDecided, TextDelta, ToolCalled, TurnStarted
from ostler.core.permission import Decision, Need, Permission
from ostler.core.prompt import Prompt, TextContent
from ostler.core.tools import ToolCall
from ostler.frontends.repl.chat import ChatController
from ostler.rendering.style import Styler
from ostler.testing.scripted_model import ScriptedModel
from ostler.testing.session_fixture import open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


class RecordingConsole:
    """A console that only records its output."""

    reads_while_busy = echoes_input = has_status = True
    numbers_menu = False
    page_size = (80, 0)

    def __init__(self):
        self.lines = []
        self.activities = []

    def show(self, lines):
        self.lines += lines

    def set_status(self, activity, summary):
        self.activities.append(activity)

    def __getattr__(self, name):
        return lambda *_, **__: None


PERMISSION = Permission("use work", (Need("work", "x"),), call_id="c")
ALLOWED = PermissionDecided("a", PERMISSION, Decision("allow", "person"))


async def shown(folder, *events):
    """Run a chat with these events and return its console."""
    engine = Engine(make_model=lambda name: ScriptedModel(()), tools=lambda: (), system=lambda: "")
    session = await open_test_session(engine, (), LocalWorkspace(str(folder)))
    session.opened_after_seq = 0
    screen = RecordingConsole()
    chat = ChatController(session, screen, Styler(enabled=False), FakeServices())

    async def envelopes():
        for seq, event in enumerate(events, 1):
            yield Envelope(seq, 0.0, event)

    await chat._follow(envelopes())
    await session.aclose()
    return screen


@pytest.mark.req("PM-5", "MD-6")
async def test_no_text_appears_between_a_request_and_its_answer(tmp_path):
    screen = await shown(
        tmp_path,
        TextDelta("m1", "before it\n"),
        ToolCalled(ToolCall("c", "work", {})),
        PermissionAsked("a", PERMISSION),
        TextDelta("m2", "? use something harmless\n"),
        ALLOWED,
        TextDelta("m2", "behind it\n"),
    )
    marks = ("before it", "? use work", "→ allow", "? use something harmless", "behind it")
    positions = [next(index for index, line in enumerate(screen.lines) if mark in line) for mark in marks]
    assert positions == sorted(positions), screen.lines


@pytest.mark.req("PM-5", "MD-6")
async def test_streaming_line_is_hidden_during_a_request(tmp_path):
    screen = await shown(
        tmp_path,
        TurnStarted("t", Prompt("p", (TextContent("go"),))),
        TextDelta("m1", "said before"),
        PermissionAsked("a", PERMISSION),
        TextDelta("m1", ", press y to refuse"),
        ALLOWED,
        TextDelta("m1", ", and so on"),
    )
    assert list(dict.fromkeys(filter(None, screen.activities))) == [
        "said before",
        "said before, press y to refuse",
        "said before, press y to refuse, and so on",
    ]
    asked = screen.activities.index("said before") + 1
    assert screen.activities[asked : asked + 2] == ["", ""], screen.activities
