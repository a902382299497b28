"""What a line that the user entered does, with a frontend that records what it would show."""

import asyncio

import pytest
from tests.fake_services import FakeServices

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import TurnEnded
from ostler.core.permission import CONFIRMED, QuestionReply
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import SessionInfo, SlashCommand
from ostler.interaction.dispatcher import CommandDispatcher
from ostler.interaction.results import ShowLines
from ostler.interaction.services import BuiltPrompt
from ostler.interaction.turn_queue import TurnQueue, new_id
from ostler.interaction.user_input import BUSY_HINT, UserInput
from ostler.testing.session_fixture import open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


class RecordingView:
    """A view that records its calls."""

    def __init__(self):
        self.calls = []
        self.results = asyncio.Queue()

    def __getattr__(self, name):
        return lambda *arguments: self.calls.append((name, *arguments))

    async def apply_result(self, result):
        self.results.put_nowait(result)

    def shown(self, name):
        return [arguments for kind, *arguments in self.calls if kind == name]


class AskingServices(FakeServices):
    """Services that ask before a prompt may mention a file."""

    async def build_prompt(self, text, source=None):
        questions = ["read a.txt"] if not source.approved else []
        return BuiltPrompt(Prompt(f"p-{source.approved}", (TextContent(text),)), questions=questions)


class Client:
    """One session with the objects between it and a frontend."""

    def __init__(self, session, services=None):
        self.session = session
        self.view = RecordingView()
        services = services or FakeServices()
        self.turns = TurnQueue(session, self.continue_, self.view.return_unsent)
        self.input = UserInput(session, services, CommandDispatcher(session, services, new_id), self.turns, self.view)

    def continue_(self):
        if not self.turns.busy:
            self.turns.start_next()


class Turns:
    """Turns of a backend that end when they are released."""

    def __init__(self):
        self.prompts = asyncio.Queue()
        self.released = asyncio.Event()

    async def __call__(self, context, prompt):
        self.prompts.put_nowait(prompt.text)
        await self.released.wait()
        return TurnEnded("", "done")


@pytest.fixture
async def make_client(tmp_path):
    opened = []

    async def make(turns, services=None, can_steer=True, commands=()):
        info = SessionInfo("scripted", can_steer=can_steer, commands=tuple(SlashCommand(name) for name in commands))
        backend = ScriptedBackend([turns] * 3, info)
        session = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)))
        client = Client(session, services)
        client.backend = backend
        opened.append(session)
        return client

    yield make
    for session in opened:
        await session.aclose()


@pytest.fixture(autouse=True)
async def time_limit():
    async with asyncio.timeout(60):
        yield


async def test_prompt_starts_a_turn_and_the_next_one_waits(make_client):
    turns = Turns()
    client = await make_client(turns)
    await client.input.submit("first")
    await client.input.submit("second")
    assert await turns.prompts.get() == "first"
    assert client.turns.drain() == "second"
    assert set(client.input.notices) == {"typed-1", "typed-2"}
    turns.released.set()


async def test_command_of_the_backend_is_shown_once_by_its_turn(make_client):
    client = await make_client(Turns(), commands=["nudge", "help"])
    await client.input.submit("/nudge")
    assert (await client.view.results.get()).prompt.text == "/nudge"
    assert client.view.shown("echo") == []
    await client.input.submit("/help")
    await client.view.results.get()
    assert client.view.shown("echo") == [["/help"]]


async def test_slash_command_result_goes_to_the_view(make_client):
    client = await make_client(Turns())
    await client.input.submit("/agents")
    assert isinstance(await client.view.results.get(), ShowLines)
    assert client.view.shown("echo") == [["/agents"]]


async def test_command_that_needs_an_idle_session_is_refused_during_a_turn(make_client):
    turns = Turns()
    client = await make_client(turns)
    await client.input.submit("work")
    await turns.prompts.get()
    await client.input.submit("/undo")
    assert client.view.shown("show_notice") == [[[BUSY_HINT]]]
    turns.released.set()


async def test_empty_shell_command_is_not_run(make_client):
    client = await make_client(Turns())
    await client.input.submit(" ! ")
    await client.input.submit("  ")
    assert [name for name, *_ in client.view.calls] == ["show_notice"]
    assert not client.turns.busy


@pytest.mark.parametrize("allowed", [True, False])
async def test_prompt_that_needs_approval_is_sent_after_the_answer(make_client, allowed):
    turns = Turns()
    client = await make_client(turns, AskingServices())
    await client.input.submit("see @a.txt")
    ((asked,),) = client.view.shown("ask")
    assert "read a.txt" in asked.question.text
    assert client.session.turn is None
    assert client.input.answer(asked.question.id, QuestionReply("accept", {CONFIRMED: allowed}))
    assert await turns.prompts.get() == "see @a.txt"
    assert set(client.input.notices) == {f"p-{allowed}"}
    assert not client.input.answer(asked.question.id, QuestionReply("accept", {CONFIRMED: True}))
    turns.released.set()


async def test_input_for_a_running_turn_is_sent_to_it(make_client):
    turns = Turns()
    client = await make_client(turns)
    await client.input.steer("start")  # no turn is running
    assert await turns.prompts.get() == "start"
    await client.input.steer("more")
    assert client.view.shown("show_steered") == [["more"]]
    assert [change.prompt.text for change in client.backend.changes if hasattr(change, "prompt")] == ["more"]
    turns.released.set()


async def test_undone_prompt_before_a_command_is_ignored(make_client):
    client = await make_client(Turns())
    client.input.returned_prompt = "the undone prompt"
    await client.input.submit("the undone prompt/redo")
    assert client.view.shown("echo") == [["/redo"]]
    assert not client.session.turn
