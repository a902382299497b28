"""Scenarios that the headless, the chat and the full-screen frontend must pass, with each backend."""

import asyncio
import io
import os
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
from drivers import Calls, Crash, EngineDriver, Hold, Say, ScriptedDriver, ServerDriver
from tests.fake_services import FakeServices
from tests.frontends.tui.tui_user import full_screen

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

NON_INTERACTIVE = type(ASK_ALL)(rules=ASK_ALL.rules, interactive=False)
NO_APPROVAL_REQUESTS = "a headless run denies instead of asking"


class HeadlessDriver:
    """The headless frontend with text output."""

    name = "headless"
    cannot: ClassVar = {
        "refusal with feedback": NO_APPROVAL_REQUESTS,
        "cancel during an approval request": NO_APPROVAL_REQUESTS,
        "two approval requests at once": NO_APPROVAL_REQUESTS,
        "steer": "a headless run has no input",
        "option changed between turns": "a headless run has one turn",
        "turn started by the remote side": "a headless run waits only for its own turn",
        "resume": "a headless run shows only new messages",
    }
    statuses: ClassVar = {"done": 0, "failed": 1, "timeout": 124, "refused": 4}
    reply = "● {text}\n  ↑ {segment}\n"  # a short reply that was streamed
    arguments = '{"subject": "x"}'

    async def show(self, session, timeout=None):
        """Run one turn. Return its output and the exit status."""
        out = io.StringIO()
        output = make_output("text", Styler(enabled=False), out)
        frontend = HeadlessFrontend(
            OpenSessionRequest(session.cwd, interactive=False), make_prompt("go"), output, timeout
        )
        status = await frontend.run(SingleSessionManager(session))
        return out.getvalue(), status


class Screen(io.StringIO):
    """The printed text; a test can wait for a part of it."""

    def __init__(self):
        super().__init__()
        self._changed = asyncio.Event()

    def write(self, text):
        self._changed.set()
        return super().write(text)

    async def wait_for(self, text):
        async with asyncio.timeout(10):
            while text not in self.getvalue():
                self._changed.clear()
                await self._changed.wait()
        return self.getvalue()


class ChatUser:
    """A user of the chat: types lines, interrupts, reads the screen."""

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
    """The chat frontend with plain lines."""

    name = "repl"
    cannot: ClassVar = {"non-interactive session": "the chat is always interactive"}
    statuses: ClassVar = dict.fromkeys(("done", "failed", "timeout"), 0)
    reply = "{segment}\n  {text}\n"
    arguments = '{"subject": "x"}'
    approval = "allow?"
    cancelled = "→ cancel"

    @asynccontextmanager
    async def at(self, session):
        """Run the chat during the `with` block; closing the input ends it."""
        user = ChatUser()
        frontend = ReplFrontend(OpenSessionRequest(session.cwd), user.console, Styler(enabled=False), FakeServices)
        running = asyncio.create_task(frontend.run(SingleSessionManager(session)))
        await user.screen.wait_for("> ")
        try:
            yield user
        finally:
            user.close()
            self.status = await running
            os.close(user.source)

    async def show(self, session, timeout=None):
        async with self.at(session) as user:
            user.type("go")
            if timeout:
                await user.screen.wait_for("⏺")
                user.interrupt()
            await user.screen.wait_for("\n> ")
        return user.screen.getvalue().removeprefix("> ").removesuffix("> "), self.status


class FullScreenUser:
    """A user of the full-screen client: types lines into the input or the open dialog."""

    def __init__(self, user):
        self._user = user
        self.screen = self

    def type(self, line):
        chat = self._user.app.chat
        if chat.controller.requests:
            chat.controller.answer(line)
        else:
            chat.prompt.put_text(line)
            chat.prompt.send()

    def interrupt(self):
        self._user.app.chat.controller.interrupt()

    def getvalue(self):
        """The transcript and the dialog."""
        return self._user.screen_text

    async def wait_for(self, text):
        await self._user.wait_until(lambda: text in self.getvalue())
        return self.getvalue()


class TuiDriver:
    """The full-screen frontend."""

    name = "tui"
    cannot: ClassVar = {"non-interactive session": "the full-screen client is always interactive"}
    statuses: ClassVar = dict.fromkeys(("done", "failed", "timeout"), 0)
    reply = "● {text}\n"
    arguments = "x"
    approval = "y  Allow once"
    cancelled = "⎿ cancelled"

    @asynccontextmanager
    async def at(self, session):
        async with full_screen(session) as user:
            yield FullScreenUser(user)

    async def show(self, session, timeout=None):
        async with full_screen(session) as user:
            typist = FullScreenUser(user)
            typist.type("go")
            await user.wait_for("> go")
            if timeout:
                await user.wait_for("⏺")
                typist.interrupt()
            await user.wait_until(lambda: not user.app.chat.controller.turns.busy)
            return f"{user.transcript.removeprefix('> go').lstrip()}\n", 0


FRONTENDS = (HeadlessDriver, ReplDriver, TuiDriver)


@pytest.fixture(params=FRONTENDS, ids=lambda driver: driver.name)
def frontend(request):
    driver = request.param()
    scenario = request.node.get_closest_marker("scenario").args[0]
    if scenario in driver.cannot:
        pytest.skip(f"{driver.name}: {driver.cannot[scenario]}")
    return driver


@pytest.fixture(params=(ScriptedDriver, EngineDriver, ServerDriver), ids=lambda driver: driver.name)
def session_of(request, tmp_path):
    """`await session_of(moves, …)` opens a session whose backend makes these moves in its first turn."""

    async def open_session(moves, tools=(), policy=ALLOW_ALL):
        driver = request.param()
        driver.folder = tmp_path
        backend = driver.backend([moves], [tool.spec for tool in tools])
        return await open_test_session(backend, list(tools), LocalWorkspace(str(tmp_path)), policy=policy)

    open_session.backend = request.param.name
    return open_session


@pytest.mark.scenario("plain answer")
@pytest.mark.sampled
async def test_01_plain_answer(frontend, session_of):
    shown, status = await frontend.show(await session_of([Say("Hello "), Say("there.")]))
    assert (shown, status) == (
        frontend.reply.format(text="Hello there.", segment="ANSWER"),
        frontend.statuses["done"],
    )


@pytest.mark.req("CL-5")
@pytest.mark.scenario("tool")
@pytest.mark.sampled
async def test_02_tool(frontend, session_of):
    moves = [Say("Looking."), Calls((ScriptedCall("probe", {"subject": "x"}),)), Say("Found.")]
    shown, status = await frontend.show(await session_of(moves, [FakeTool("probe")]))
    assert status == frontend.statuses["done"]
    plan = frontend.reply.format(text="Looking.", segment="PLAN")
    assert shown.index(plan) < shown.index(f"⏺ probe {frontend.arguments}") < shown.index("⎿ probe ran")
    assert shown.endswith(frontend.reply.format(text="Found.", segment="ANSWER"))


@pytest.mark.scenario("cancel during a call")
@pytest.mark.sampled
async def test_05_cancel_during_a_call(frontend, session_of):
    async def forever(arguments, context):
        await asyncio.Event().wait()

    moves = [Calls((ScriptedCall("probe"),))]
    session = await session_of(moves, [FakeTool("probe", forever)])
    shown, status = await frontend.show(session, timeout=0.05)
    assert status == frontend.statuses["timeout"]
    assert "⏺ probe" in shown


@pytest.mark.scenario("connection lost")
@pytest.mark.sampled
async def test_06_connection_lost(frontend, session_of):
    shown, status = await frontend.show(await session_of([Say("I was about"), Crash()]))
    assert status == frontend.statuses["failed"]
    assert "I was about" in shown
    assert "[truncated]" in shown
    assert "✗ the connection was lost" in shown


@pytest.mark.req("CL-5")
async def test_closed_output_ends_the_run_and_cancels_the_turn(session_of):
    class ClosedOutput(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    async def forever(arguments, context):
        await asyncio.Event().wait()

    session = await session_of([Calls((ScriptedCall("probe"),))], [FakeTool("probe", forever)])
    frontend = HeadlessFrontend(
        OpenSessionRequest(session.cwd, interactive=False),
        make_prompt("go"),
        make_output("jsonl", Styler(enabled=False), ClosedOutput()),
    )
    with pytest.raises(BrokenPipeError):  # the command line handles it
        await frontend.run(SingleSessionManager(session))
    assert isinstance(last := session.events()[-1], TurnEnded) and last.reason == "cancelled"


@pytest.mark.req("SH-4")
@pytest.mark.scenario("non-interactive session")
@pytest.mark.sampled
async def test_08_non_interactive_session(frontend, session_of):
    moves = [Calls((ScriptedCall("probe"),)), Say("I could not.")]
    shown, status = await frontend.show(await session_of(moves, [FakeTool("probe")], NON_INTERACTIVE))
    assert status == frontend.statuses["refused"]
    assert "blocked:" in shown
    assert "denied: use probe" in shown


@pytest.mark.scenario("repeated call id")
@pytest.mark.sampled
async def test_09_repeated_call_id(frontend, session_of):
    again = Calls((ScriptedCall("probe", {}, "the-call"),))
    shown, _ = await frontend.show(await session_of([again, again, Say("Done.")], [FakeTool("probe")]))
    has_model = session_of.backend in ("engine", "server")  # a model can repeat an id
    assert shown.count("⎿ probe ran") == (2 if has_model else 1)


@pytest.mark.req("CL-5")
@pytest.mark.scenario("tool")
@pytest.mark.invariant("R5")
@pytest.mark.sampled
async def test_control_characters_are_removed_from_all_output(frontend, session_of):
    async def hostile(arguments, context):
        return "\x1b]52;c;ZXZpbA==\x07\x1b[2Jgone"

    moves = [Say("\x1b[31mred\u202e"), Calls((ScriptedCall("probe", {"subject": "\x1b[2J"}),)), Say("\x9b2Jx")]
    shown, _ = await frontend.show(await session_of(moves, [FakeTool("probe", hostile)]))
    assert not set(shown) & {"\x1b", "\x9b", "\x07", "\u202e"}


@pytest.mark.req("PM-5")
@pytest.mark.scenario("refusal with feedback")
@pytest.mark.sampled
async def test_03_refusal_with_feedback(frontend, session_of):
    tool = FakeTool("probe")
    session = await session_of([Calls((ScriptedCall("probe"),)), Say("As you say.")], [tool], ASK_ALL)
    async with frontend.at(session) as user:
        user.type("go")
        shown = await user.screen.wait_for(frontend.approval)
        user.type("m")
        await user.screen.wait_for("message to the agent:")
        user.type("look in b instead")
        await user.screen.wait_for("As you say.")
    assert "? use probe" in shown
    assert not tool.runs
    result = next(e.result for e in session.events() if isinstance(e, ToolFinished))
    assert (result.status, "look in b instead" in result.for_model) == ("denied", True)


@pytest.mark.req("CL-9")
@pytest.mark.scenario("cancel during an approval request")
@pytest.mark.sampled
async def test_04_cancel_during_an_approval_request(frontend, session_of):
    tool = FakeTool("probe")
    session = await session_of([Calls((ScriptedCall("probe"),))], [tool], ASK_ALL)
    async with frontend.at(session) as user:
        user.type("go")
        await user.screen.wait_for(frontend.approval)
        user.interrupt()
        shown = await user.screen.wait_for("✗ cancelled")
    assert frontend.cancelled in shown
    assert not tool.runs
    assert not session.state.asks


@pytest.mark.req("PM-5")
@pytest.mark.scenario("two approval requests at once")
@pytest.mark.sampled
async def test_07_two_approval_requests_at_once(frontend, session_of):
    first, second = FakeTool("first", effects=False), FakeTool("second", effects=False)
    both = Calls((ScriptedCall("first"), ScriptedCall("second")))
    session = await session_of([both, Say("Done.")], [first, second], ASK_ALL)
    async with frontend.at(session) as user:
        user.type("go")
        shown = await user.screen.wait_for(frontend.approval)
        assert "? use second" not in shown
        user.type("n")
        await user.screen.wait_for("? use second")
        user.type("y")
        await user.screen.wait_for("Done.")
    assert (len(first.runs), len(second.runs)) == (0, 1)


@pytest.mark.scenario("two approval requests at once")
@pytest.mark.sampled
async def test_request_answered_elsewhere_is_withdrawn(frontend, session_of):
    tool = FakeTool("probe")
    session = await session_of([Calls((ScriptedCall("probe"),)), Say("Done.")], [tool], ASK_ALL)
    async with frontend.at(session) as user:
        user.type("go")
        await user.screen.wait_for(frontend.approval)
        assert session.answer(next(iter(session.state.asks)), Decision("allow", by="person"))
        await user.screen.wait_for("Done.")
    assert len(tool.runs) == 1


@pytest.mark.req("EN-16")
@pytest.mark.scenario("steer")
@pytest.mark.sampled
async def test_10_steer(frontend, session_of):
    held = asyncio.Event()
    session = await session_of([Say("Thinking\n"), Hold(held), Say("done.")])
    async with frontend.at(session) as user:
        user.type("go")
        await user.screen.wait_for("● Thinking")
        user.type("/steer look left")
        await user.screen.wait_for("↳ look left")
        held.set()
        await user.screen.wait_for("done.")
    assert [e.prompt.text for e in session.events() if isinstance(e, Steered)] == ["look left"]


@pytest.mark.scenario("option changed between turns")
@pytest.mark.sampled
async def test_11_option_changed_between_turns(frontend, tmp_path):
    backend = ScriptedBackend([])
    session = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)))
    async with frontend.at(session) as user:
        user.type("/models two")
        await user.screen.wait_for("now using model two")
    assert backend.changes == [SetOption("model", "two")]


@pytest.mark.scenario("turn started by the remote side")
@pytest.mark.sampled
async def test_12_turn_started_by_the_remote_side(frontend, tmp_path):
    async def act(context, _):
        context.emit(TextDelta("m", "I began."))
        context.emit(MessageDone(Message("m", (TextContent("I began."),))))

    backend = ScriptedBackend([act])
    session = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)))
    async with frontend.at(session) as user:
        backend.context.remote_turn_started(make_prompt("from afar"))
        shown = await user.screen.wait_for("I began.")
    assert shown.index("> from afar") < shown.index(frontend.reply.format(text="I began.", segment="ANSWER").rstrip())


@pytest.mark.req("SE-1")
@pytest.mark.scenario("resume")
@pytest.mark.sampled
async def test_13_resume(frontend, tmp_path, session_of):
    session = await session_of([Say("Said before.")])
    await (session.start(make_prompt("once"))).wait()
    await session.aclose()
    again = await open_test_session(ScriptedBackend([]), [], LocalWorkspace(str(tmp_path)), journal=session._journal)
    async with frontend.at(again) as user:
        await user.screen.wait_for("Said before.")
    assert user.screen.getvalue().count("Said before.") == 1
