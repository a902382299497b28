"""Prompts that are typed during a turn wait on the server, where every client sees them and can withdraw them."""

import asyncio

import pytest
from tests.loop_server import LoopServer, make_plan

from ostler.backends.remote.backend import RemoteBackend
from ostler.backends.remote.waiting_messages import WaitingMessages
from ostler.core.events import TurnEnded, TurnStarted
from ostler.interaction.turn_queue import TurnQueue
from ostler.testing.fake_tool import FakeTool
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel
from ostler.testing.session_fixture import make_prompt, open_test_session
from ostler.wire.client_frames import UserMessageFrame
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("SV-12")


class Chat:
    """A session of a real server with a queue as a frontend has it. The first turn waits in a call."""

    def __init__(self, folder):
        self.go_on = asyncio.Event()
        call = ScriptedLine("", (ScriptedCall("probe", {}, "call-1"),))
        self.model = ScriptedModel([call, ScriptedLine("first"), ScriptedLine("second")], context_limit=1_000_000)
        self.server = LoopServer(folder / "server", lambda name: self.model)
        self.tool = FakeTool("probe", self._probe)
        self._folder = folder
        self.failures = []

    async def _probe(self, arguments, context):
        await self.go_on.wait()
        return "ok"

    async def __aenter__(self):
        await self.server.start()
        self.backend = RemoteBackend(make_plan([self.tool.spec]), self.server.connect(through_proxy=True))
        self.session = await open_test_session(self.backend, [self.tool], LocalWorkspace(str(self._folder)))
        self.queue = TurnQueue(self.session, lambda: None, lambda *failure: self.failures.append(failure))
        self._reading = asyncio.create_task(self._read(self.session.subscribe()))
        self.queue.enqueue(make_prompt("one", "prompt-1"))
        self.queue.start_next()
        await self.until(lambda: self.tool.runs)
        return self

    async def __aexit__(self, *_):
        self.go_on.set()
        await self.queue.aclose()
        await self._reading
        await self.server.stop()

    async def _read(self, events):
        async for envelope in events:
            self.queue.on_event(envelope.event)
            self.queue.start_next()

    async def until(self, condition):
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)

    @property
    def hub(self):
        return next(iter(self.server.hubs._hubs.values()))

    def prompts(self):
        return [event.prompt.text for event in self.session.events() if isinstance(event, TurnStarted)]

    def ends(self):
        return [event.reason for event in self.session.events() if isinstance(event, TurnEnded)]


async def test_prompts_wait_on_the_server_and_each_starts_one_turn(tmp_path):
    async with Chat(tmp_path) as chat:
        chat.queue.enqueue(make_prompt("two", "prompt-2"))
        chat.queue.enqueue(make_prompt("three", "prompt-3"))
        await chat.until(lambda: chat.queue.queued == 2)
        assert [item.content for item in chat.hub.queue.items()] == ["two", "three"]
        assert await chat.hub.queue.withdraw("prompt-3")  # as another client does
        await chat.until(lambda: chat.queue.queued == 1)
        chat.server.proxy.reset_all()
        chat.go_on.set()
        await chat.until(lambda: len(chat.ends()) == 2)
        assert (chat.prompts(), chat.ends(), chat.queue.queued) == (["one", "two"], ["done", "done"], 0)
        assert chat.failures == []


async def test_prompt_of_another_client_is_withdrawn(tmp_path):
    async with Chat(tmp_path) as chat:
        await chat.hub.queue.receive(UserMessageFrame("from another", client_message_id="other-1"), "bob")
        chat.queue.enqueue(make_prompt("two", "prompt-2"))
        await chat.until(lambda: chat.queue.queued == 2)
        assert chat.queue.queued_texts == ("two", "bob: from another")
        assert [chat.queue.withdraw_last(), chat.queue.withdraw_last()] == ["two", "from another"]
        await chat.until(lambda: not (chat.hub.queue.prompts or chat.queue.queued_texts))
        assert chat.queue.withdraw_last() == ""
        chat.go_on.set()
        await chat.until(lambda: chat.ends() == ["done"])
        assert (chat.prompts(), chat.failures) == (["one"], [])


async def test_client_that_attaches_later_sees_the_queue_and_withdraws_from_it(tmp_path):
    async with Chat(tmp_path) as chat:
        chat.queue.enqueue(make_prompt("two", "prompt-2"))
        await chat.until(lambda: chat.hub.queue.prompts)
        plan = make_plan([], session_id=chat.hub.id)
        (tmp_path / "other").mkdir()
        viewer = RemoteBackend(plan, chat.server.connect())
        session = await open_test_session(viewer, [], LocalWorkspace(str(tmp_path / "other")))
        queue = TurnQueue(session, lambda: None, lambda *failure: None)
        async for envelope in session.subscribe():
            queue.on_event(envelope.event)
            if queue.queued_texts:
                break
        assert queue.queued_texts == ("ada: two",)
        assert queue.withdraw_last() == "two"
        await chat.until(lambda: not chat.hub.queue.prompts)
        await session.aclose()


async def test_withdrawing_without_a_connection_is_reported(tmp_path):
    async with Chat(tmp_path) as chat:
        await chat.hub.queue.receive(UserMessageFrame("from another", client_message_id="other-1"), "bob")
        await chat.until(lambda: chat.queue.queued == 1)
        chat.backend._stream._websocket, connection = None, chat.backend._stream._websocket
        chat.queue.withdraw_last()
        await chat.until(lambda: chat.failures)
        chat.backend._stream._websocket = connection
        assert "the prompt still waits" in chat.failures[0][0]
        assert [item.content for item in chat.hub.queue.items()] == ["from another"]


async def test_cancelling_withdraws_what_waits_and_returns_the_text(tmp_path):
    async with Chat(tmp_path) as chat:
        chat.queue.enqueue(make_prompt("two", "prompt-2"))
        await chat.until(lambda: chat.queue.queued == 1)
        chat.queue.cancel()
        await chat.until(lambda: chat.ends() == ["cancelled"])
        assert chat.queue.drain() == "two"
        await chat.until(lambda: not chat.hub.queue.prompts and chat.hub.session.turn is None)
        assert chat.prompts() == ["one"]


async def test_message_that_the_server_refuses_is_reported(tmp_path):
    async with Chat(tmp_path) as chat:
        chat.hub.config = type(chat.hub.config)(queue=0)
        chat.queue.enqueue(make_prompt("two", "prompt-2"))
        await chat.until(lambda: chat.failures)
        assert "messages wait already" in chat.failures[0][0]


async def test_message_is_repeated_also_if_nobody_waits_for_its_answer_any_more():
    sent = []
    waiting = WaitingMessages("s", sent.append, lambda prompt, id: UserMessageFrame(prompt.text, "s", id))
    task = asyncio.create_task(waiting.set([make_prompt("text", "one")]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    waiting.on_connected(resumed=True)
    assert [message.client_message_id for message in sent] == ["one", "one"]
    waiting.on_accepted("one")
    waiting.on_connected(resumed=True)
    assert len(sent) == 2
