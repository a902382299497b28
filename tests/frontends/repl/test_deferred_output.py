"""What a model goes on to say while a person is asked: it stands below the answer."""

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
    """A terminal that only remembers what was printed."""

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
    """What was printed, and what passed below the prompt."""
    engine = Engine(make_model=lambda name: ScriptedModel(()), tools=lambda: (), system=lambda: "")
    session = await open_test_session(engine, (), LocalWorkspace(str(folder)))
    session.opened_after_seq = 0
    screen = RecordingConsole()
    chat = ChatController(session, screen, Styler(enabled=False), FakeServices())

    async def happening():
        for seq, event in enumerate(events, 1):
            yield Envelope(seq, 0.0, event)

    await chat._follow(happening())
    await session.aclose()
    return screen


@pytest.mark.req("PM-5", "MD-6")
async def test_no_words_come_between_an_ask_and_its_answer(tmp_path):
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
    places = [next(at for at, line in enumerate(screen.lines) if mark in line) for mark in marks]
    assert places == sorted(places), screen.lines


@pytest.mark.req("PM-5", "MD-6")
async def test_the_line_being_said_does_not_pass_beside_an_ask(tmp_path):
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
    assert screen.activities[asked : asked + 2] == ["", ""], screen.passing
