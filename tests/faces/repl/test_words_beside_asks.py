"""What a model goes on to say while a person is asked: it stands below the answer."""

import pytest
from tests.fake_services import FakeServices

from ostler.backends.engine.backend import Engine
from ostler.drawing.paint import Paint
from ostler.faces.repl.chat import Chat
from ostler.testing.scripted_model import ScriptedModel
from ostler.testing.stagehand import open_session
from ostler.vocabulary.events import Envelope, PermissionAsked, PermissionDecided, TextDelta, ToolCalled
from ostler.vocabulary.permission import Decision, Need, Permission
from ostler.vocabulary.tools import ToolCall
from ostler.workspace.ground import Workspace


class Screen:
    """A terminal that only remembers what was printed."""

    live = echoes = has_status = True
    numbers = False
    page = (80, 0)

    def __init__(self):
        self.lines = []

    def show(self, lines):
        self.lines += lines

    def __getattr__(self, name):
        return lambda *_, **__: None


@pytest.mark.req("PM-5", "MD-6")
async def test_no_words_come_between_an_ask_and_its_answer(tmp_path):
    engine = Engine(make_model=lambda name: ScriptedModel(()), tools=lambda: (), system=lambda: "")
    session = await open_session(engine, (), Workspace(str(tmp_path)))
    session.opened_at = 0
    screen = Screen()
    chat = Chat(session, screen, Paint(on=False), FakeServices())
    permission = Permission("use work", (Need("work", "x"),), call_id="c")

    async def happening():
        for seq, event in enumerate(
            (
                TextDelta("m1", "before it\n"),
                ToolCalled(ToolCall("c", "work", {})),
                PermissionAsked("a", permission),
                TextDelta("m2", "? use something harmless\n"),
                PermissionDecided("a", permission, Decision("allow", "person")),
                TextDelta("m2", "behind it\n"),
            ),
            1,
        ):
            yield Envelope(seq, 0.0, event)

    await chat._follow(happening())
    await session.aclose()
    marks = ("before it", "? use work", "→ allow", "? use something harmless", "behind it")
    places = [next(at for at, line in enumerate(screen.lines) if mark in line) for mark in marks]
    assert places == sorted(places), screen.lines
