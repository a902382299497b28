"""Every face shows the same scenes, whichever backend plays them; one that cannot says so by name."""

import asyncio
import io
import os
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
from drivers import Calls, Crash, EngineDriver, Hold, Say, ScriptedDriver
from tests.fake_services import FakeServices

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import MessageDone, Steered, TextDelta, ToolFinished, TurnEnded
from ostler.core.message import Message
from ostler.core.permission import Decision
from ostler.core.prompt import TextContent
from ostler.core.sessions import OpenSessionRequest, SetOption
from ostler.frontends.headless.frontend import HeadlessFrontend
from ostler.frontends.headless.outputs import make_output
from ostler.frontends.repl.console import InterruptRequested
from ostler.frontends.repl.frontend import ReplFrontend
from ostler.frontends.repl.plain_console import PlainConsole
from ostler.rendering.style import Styler
from ostler.testing.fake_tool import FakeTool
from ostler.testing.scripted_model import ScriptedCall
from ostler.testing.session_fixture import ALLOW_ALL, ASK_ALL, SingleSessionManager, make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

UNATTENDED = type(ASK_ALL)(rules=ASK_ALL.rules, interactive=False)
ASKS_NOBODY = "it never asks: a run without a person refuses instead"


class PrinterDriver:
    """The headless face, printing text."""

    name = "printer"
    cannot: ClassVar = {
        "refusal with feedback": ASKS_NOBODY,
        "cancel while asking": ASKS_NOBODY,
        "two asks at once": ASKS_NOBODY,
        "steer": "nobody is there to type",
        "option changed between turns": "it plays one turn",
        "a turn begun by the far side": "it waits for its own turn alone",
        "resume": "it shows what is new alone",
    }
    statuses: ClassVar = {"done": 0, "failed": 1, "timeout": 124, "refused": 4}

    async def show(self, session, timeout=None):
        """What is on the screen, and the exit status."""
        out = io.StringIO()
        output = make_output("text", Styler(enabled=False), out)
        face = HeadlessFrontend(OpenSessionRequest(session.cwd, interactive=False), make_prompt("go"), output, timeout)
        status = await face.run(SingleSessionManager(session))
        return out.getvalue(), status


class Screen(io.StringIO):
    """What was printed; a test waits for what it wants to see next."""

    def __init__(self):
        super().__init__()
        self._changed = asyncio.Event()

    def write(self, text):
        self._changed.set()
        return super().write(text)

    async def seen(self, wanted):
        async with asyncio.timeout(10):
            while wanted not in self.getvalue():
                self._changed.clear()
                await self._changed.wait()
        return self.getvalue()


class Desk:
    """A person at the line client: types, interrupts, looks."""

    def __init__(self):
        self.screen = Screen()
        self.source, self._keys = os.pipe()
        self.console = PlainConsole(self.source, self.screen, is_terminal=True)

    def type(self, line):
        os.write(self._keys, f"{line}\n".encode())

    def interrupt(self):
        self.console.inject(InterruptRequested())

    def close(self):
        os.close(self._keys)


class ReplDriver:
    """The line client on plain lines."""

    name = "repl"
    cannot: ClassVar = {"unattended ask": "it is opened only where a person is"}
    statuses: ClassVar = dict.fromkeys(("done", "failed", "timeout"), 0)

    @asynccontextmanager
    async def at(self, session):
        """A desk with the client running; it is left at the end by closing the input."""
        desk = Desk()
        face = ReplFrontend(OpenSessionRequest(session.cwd), desk.console, Styler(enabled=False), FakeServices)
        running = asyncio.create_task(face.run(SingleSessionManager(session)))
        await desk.screen.seen("> ")
        try:
            yield desk
        finally:
            desk.close()
            self.status = await running
            os.close(desk.source)

    async def show(self, session, timeout=None):
        async with self.at(session) as desk:
            desk.type("go")
            if timeout:
                await desk.screen.seen("⏺")
                desk.interrupt()
            await desk.screen.seen("\n> ")
        return desk.screen.getvalue().removeprefix("> ").removesuffix("> "), self.status


FACES = (PrinterDriver, ReplDriver)


@pytest.fixture(params=FACES, ids=lambda face: face.name)
def face(request):
    made = request.param()
    scene = request.node.get_closest_marker("scene").args[0]
    if scene in made.cannot:
        pytest.skip(f"{made.name}: {made.cannot[scene]}")
    return made


@pytest.fixture(params=(ScriptedDriver, EngineDriver), ids=lambda driver: driver.name)
def session_of(request, tmp_path):
    """`await session_of(moves, …)`: a session whose backend makes these moves in its first turn."""

    async def made(moves, tools=(), policy=ALLOW_ALL):
        backend = request.param().backend([moves], [tool.spec for tool in tools])
        return await open_test_session(backend, list(tools), LocalWorkspace(str(tmp_path)), policy=policy)

    made.backend = request.param.name
    return made


@pytest.mark.scene("plain answer")
async def test_01_plain_answer(face, session_of):
    shown, status = await face.show(await session_of([Say("Hello "), Say("there.")]))
    assert (shown, status) == ("ANSWER\n  Hello there.\n", face.statuses["done"])


@pytest.mark.req("CL-5")
@pytest.mark.scene("tool")
async def test_02_tool(face, session_of):
    moves = [Say("Looking."), Calls((ScriptedCall("probe", {"subject": "x"}),)), Say("Found.")]
    shown, status = await face.show(await session_of(moves, [FakeTool("probe")]))
    assert status == face.statuses["done"]
    assert shown.index("PLAN\n  Looking.") < shown.index('⏺ probe {"subject": "x"}') < shown.index("⎿ probe ran")
    assert shown.endswith("ANSWER\n  Found.\n")


@pytest.mark.scene("cancel while running")
async def test_05_cancel_while_running(face, session_of):
    async def forever(arguments, context):
        await asyncio.Event().wait()

    moves = [Calls((ScriptedCall("probe"),))]
    session = await session_of(moves, [FakeTool("probe", forever)])
    shown, status = await face.show(session, timeout=0.05)
    assert status == face.statuses["timeout"]
    assert "⏺ probe" in shown


@pytest.mark.scene("crash of the far side")
async def test_06_crash_of_the_far_side(face, session_of):
    shown, status = await face.show(await session_of([Say("I was about"), Crash()]))
    assert status == face.statuses["failed"]
    assert "I was about" in shown
    assert "[cut off here]" in shown
    assert "✗ the connection was lost" in shown


@pytest.mark.req("CL-5")
async def test_a_reader_that_goes_ends_the_run_and_the_journal_says_that_the_turn_was_cut(session_of):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    async def forever(arguments, context):
        await asyncio.Event().wait()

    session = await session_of([Calls((ScriptedCall("probe"),))], [FakeTool("probe", forever)])
    face = HeadlessFrontend(
        OpenSessionRequest(session.cwd, interactive=False),
        make_prompt("go"),
        make_output("jsonl", Styler(enabled=False), Gone()),
    )
    with pytest.raises(BrokenPipeError):  # the program ends quietly for it
        await face.run(SingleSessionManager(session))
    assert isinstance(last := session.events()[-1], TurnEnded) and last.reason == "cancelled"


@pytest.mark.req("SH-4")
@pytest.mark.scene("unattended ask")
async def test_08_unattended_ask(face, session_of):
    moves = [Calls((ScriptedCall("probe"),)), Say("I could not.")]
    shown, status = await face.show(await session_of(moves, [FakeTool("probe")], UNATTENDED))
    assert status == face.statuses["refused"]
    assert "blocked:" in shown
    assert "denied: use probe" in shown


@pytest.mark.scene("a call repeated by id")
async def test_09_a_call_repeated_by_id(face, session_of):
    again = Calls((ScriptedCall("probe", {}, "the-call"),))
    shown, _ = await face.show(await session_of([again, again, Say("Done.")], [FakeTool("probe")]))
    assert shown.count("⎿ probe ran") == (2 if session_of.backend == "engine" else 1)  # a model means two calls


@pytest.mark.req("CL-5")
@pytest.mark.scene("tool")
async def test_nothing_from_outside_reaches_the_terminal_raw(face, session_of):
    async def hostile(arguments, context):
        return "\x1b]52;c;ZXZpbA==\x07\x1b[2Jgone"

    moves = [Say("\x1b[31mred\u202e"), Calls((ScriptedCall("probe", {"subject": "\x1b[2J"}),)), Say("\x9b2Jx")]
    shown, _ = await face.show(await session_of(moves, [FakeTool("probe", hostile)]))
    assert not set(shown) & {"\x1b", "\x9b", "\x07", "\u202e"}


@pytest.mark.req("PM-5")
@pytest.mark.scene("refusal with feedback")
async def test_03_refusal_with_feedback(face, session_of):
    tool = FakeTool("probe")
    session = await session_of([Calls((ScriptedCall("probe"),)), Say("As you say.")], [tool], ASK_ALL)
    async with face.at(session) as desk:
        desk.type("go")
        shown = await desk.screen.seen("allow?")
        desk.type("m")
        await desk.screen.seen("message to the agent:")
        desk.type("look in b instead")
        await desk.screen.seen("As you say.")
    assert "? use probe" in shown
    assert not tool.runs
    result = next(e.result for e in session.events() if isinstance(e, ToolFinished))
    assert (result.status, "look in b instead" in result.for_model) == ("denied", True)


@pytest.mark.req("CL-9")
@pytest.mark.scene("cancel while asking")
async def test_04_cancel_while_asking(face, session_of):
    tool = FakeTool("probe")
    session = await session_of([Calls((ScriptedCall("probe"),))], [tool], ASK_ALL)
    async with face.at(session) as desk:
        desk.type("go")
        await desk.screen.seen("allow?")
        desk.interrupt()
        shown = await desk.screen.seen("✗ cancelled")
    assert "→ cancel" in shown
    assert not tool.runs
    assert not session.state.asks


@pytest.mark.req("PM-5")
@pytest.mark.scene("two asks at once")
async def test_07_two_asks_at_once(face, session_of):
    first, second = FakeTool("first", effects=False), FakeTool("second", effects=False)
    both = Calls((ScriptedCall("first"), ScriptedCall("second")))
    session = await session_of([both, Say("Done.")], [first, second], ASK_ALL)
    async with face.at(session) as desk:
        desk.type("go")
        shown = await desk.screen.seen("allow?")
        assert "? use second" not in shown
        desk.type("n")
        await desk.screen.seen("? use second")
        desk.type("y")
        await desk.screen.seen("Done.")
    assert (len(first.runs), len(second.runs)) == (0, 1)


@pytest.mark.scene("two asks at once")
async def test_an_ask_answered_elsewhere_is_taken_away(face, session_of):
    tool = FakeTool("probe")
    session = await session_of([Calls((ScriptedCall("probe"),)), Say("Done.")], [tool], ASK_ALL)
    async with face.at(session) as desk:
        desk.type("go")
        await desk.screen.seen("allow?")
        assert session.answer(next(iter(session.state.asks)), Decision("allow", by="person"))
        await desk.screen.seen("Done.")
    assert len(tool.runs) == 1


@pytest.mark.req("EN-16")
@pytest.mark.scene("steer")
async def test_10_steer(face, session_of):
    held = asyncio.Event()
    session = await session_of([Say("Thinking\n"), Hold(held), Say("done.")])
    async with face.at(session) as desk:
        desk.type("go")
        await desk.screen.seen("● Thinking")
        desk.type("/steer look left")
        await desk.screen.seen("↳ look left")
        held.set()
        await desk.screen.seen("done.")
    assert [e.prompt.text for e in session.events() if isinstance(e, Steered)] == ["look left"]


@pytest.mark.scene("option changed between turns")
async def test_11_option_changed_between_turns(face, tmp_path):
    backend = ScriptedBackend([])
    session = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)))
    async with face.at(session) as desk:
        desk.type("/models other")
        await desk.screen.seen("from now on: other")
    assert backend.changes == [SetOption("model", "other")]


@pytest.mark.scene("a turn begun by the far side")
async def test_12_a_turn_begun_by_the_far_side(face, tmp_path):
    async def act(context, _):
        context.emit(TextDelta("m", "I began."))
        context.emit(MessageDone(Message("m", (TextContent("I began."),))))

    backend = ScriptedBackend([act])
    session = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)))
    async with face.at(session) as desk:
        backend.context.remote_turn_started(make_prompt("from afar"))
        shown = await desk.screen.seen("I began.")
    assert shown.index("> from afar") < shown.index("ANSWER\n  I began.")


@pytest.mark.req("SE-1")
@pytest.mark.scene("resume")
async def test_13_resume(face, tmp_path, session_of):
    session = await session_of([Say("Said before.")])
    await (session.start(make_prompt("once"))).wait()
    again = await open_test_session(ScriptedBackend([]), [], LocalWorkspace(str(tmp_path)), journal=session._journal)
    async with face.at(again) as desk:
        await desk.screen.seen("Said before.")
    assert desk.screen.getvalue().count("Said before.") == 1
