"""Two clients of one session of a real server: one runs the tools, the other one watches, sends and takes over."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.loop_server import LoopServer, make_plan

from ostler.backends.remote.backend import RemoteBackend
from ostler.core.events import (
    MessageDone,
    Notice,
    PermissionAsked,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ostler.core.permission import Decision, QuestionReply
from ostler.core.sessions import TakeTools
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.fake_tool import FakeTool
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel
from ostler.testing.session_fixture import ALLOW_ALL, ASK_ALL, make_prompt, open_test_session
from ostler.wire.client_frames import ApprovalAnswer
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("SV-12")
SECONDS = 20


class Client:
    """A session with the server on a machine of its own, and what it shows."""

    def __init__(self, session, backend):
        self.session, self.backend = session, backend
        self.events = []
        self._changed = asyncio.Event()
        self._reading = asyncio.create_task(self._read(session.subscribe()))

    async def _read(self, envelopes):
        async for envelope in envelopes:
            self.events.append(envelope.event)
            self._changed.set()

    async def wait_for(self, condition):
        """Wait until an event meets a condition, and return the first one."""
        async with asyncio.timeout(SECONDS):
            while not (found := [event for event in self.events if condition(event)]):
                self._changed.clear()
                await self._changed.wait()
        return found[0]

    async def wait_end(self, count=1):
        async with asyncio.timeout(SECONDS):
            while len(ends := self.of(TurnEnded)) < count:
                self._changed.clear()
                await self._changed.wait()
        return ends[count - 1]

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def notices(self, text):
        return [event.text for event in self.of(Notice) if text in event.text]

    def start(self, text):
        return self.session.start(make_prompt(text, self.session.new_id("prompt")))

    def send(self, frame):
        """Send a message as another program would."""
        self.backend._stream.send(frame)

    async def aclose(self):
        await self.session.aclose()
        await self._reading


class Desk:
    """The server, and the clients that a test opens."""

    def __init__(self, server, model, folder):
        self.server, self.model, self._folder = server, model, folder
        self._clients = []

    async def first(self, name, work, **options):
        """Open a client on the machine `name`, whose tool does `work`, with a new session of the server."""
        backend_options = {key: options.pop(key) for key in tuple(options) if key not in ("policy", "danger")}
        tool = FakeTool("probe", work, danger=options.get("danger", "ordinary"))
        backend = RemoteBackend(make_plan([tool.spec], name, **backend_options), self.server.connect())
        folder = self._folder / name
        folder.mkdir()
        journal, policy = MemoryJournal(f"session-{name}"), options.get("policy", ALLOW_ALL)
        session = await open_test_session(backend, [tool], LocalWorkspace(str(folder)), policy=policy, journal=journal)
        backend.share_requests(session)
        self._clients.append(Client(session, backend))
        return self._clients[-1]

    async def client(self, name, work, **options):
        """Open another client of the same session."""
        session_id = self._clients[0].session.info.fact("server").rpartition("/")[2]
        return await self.first(name, work, session_id=session_id, **options)

    async def aclose(self):
        for client in self._clients:
            await client.aclose()


@pytest.fixture
def serve(tmp_path):
    @asynccontextmanager
    async def started(*lines):
        model = ScriptedModel(list(lines), context_limit=1_000_000)
        server = LoopServer(tmp_path / "server", lambda name: model)
        await server.start()
        desk = Desk(server, model, tmp_path)
        try:
            yield desk
        finally:
            await desk.aclose()
            await server.stop()

    return started


def call(subject, call_id):
    return ScriptedLine("", (ScriptedCall("probe", {"subject": subject}, call_id),))


class Work:
    """What a tool does: it notes the subjects of its calls, and can wait in one of them."""

    def __init__(self, waits_at=""):
        self.subjects = []
        self.is_waiting, self.go_on = asyncio.Event(), asyncio.Event()
        self._waits_at = waits_at

    async def __call__(self, arguments, context):
        self.subjects.append(arguments["subject"])
        if arguments["subject"] == self._waits_at:
            self.is_waiting.set()
            await self.go_on.wait()
        return f"did {arguments['subject']}"


async def test_second_client_watches_the_turn_and_says_which_machine_runs_the_tools(serve):
    laptop_work, desk_work = Work("b"), Work()
    async with serve(call("a", "c1"), ScriptedLine("first"), call("b", "c2"), ScriptedLine("second")) as desk:
        laptop = await desk.first("laptop", laptop_work)
        laptop.start("one")
        await laptop.wait_end()
        laptop.start("two")
        await laptop_work.is_waiting.wait()
        viewer = await desk.client("desktop", desk_work)
        assert viewer.session.info.fact("tools") == "laptop"
        assert viewer.session.info.option("model") == laptop.session.info.option("model") != ""
        await viewer.wait_for(lambda event: isinstance(event, MessageDone) and event.message.text == "first")
        laptop_work.go_on.set()
        await viewer.wait_for(lambda event: isinstance(event, MessageDone) and event.message.text == "second")
        assert (await viewer.wait_end()).reason == "done"
        finished = await viewer.wait_for(lambda event: isinstance(event, ToolFinished) and event.result.call_id == "c2")
        assert finished.result.status == "ok"
        assert len(viewer.notices("laptop runs the tools")) == 1
        assert (laptop_work.subjects, desk_work.subjects) == (["a", "b"], [])


async def test_viewer_sends_a_prompt_whose_tools_run_on_the_host(serve):
    laptop_work, desk_work = Work(), Work()
    async with serve(call("a", "c1"), ScriptedLine("done it")) as desk:
        laptop = await desk.first("laptop", laptop_work)
        viewer = await desk.client("desktop", desk_work)
        viewer.start("do it")
        assert (await viewer.wait_end()).reason == "done"
        assert (await laptop.wait_end()).reason == "done"
        assert [event.prompt.text for event in laptop.of(TurnStarted)] == ["do it"]
        assert (laptop_work.subjects, desk_work.subjects) == (["a"], [])


async def test_viewer_cancels_the_turn_of_the_host(serve):
    laptop_work = Work("a")
    async with serve(call("a", "c1")) as desk:
        laptop = await desk.first("laptop", laptop_work)
        laptop.start("work")
        await laptop_work.is_waiting.wait()
        viewer = await desk.client("desktop", Work())
        await viewer.wait_for(lambda event: isinstance(event, TurnStarted))
        viewer.session.turn.cancel()
        assert (await laptop.wait_end()).reason == "cancelled"
        assert (await viewer.wait_end()).reason == "cancelled"


async def test_tools_are_taken_over_in_the_middle_of_a_call(serve):
    laptop_work, desk_work = Work("a"), Work()
    async with serve(call("a", "c1"), call("b", "c2"), ScriptedLine("all done")) as desk:
        laptop = await desk.first("laptop", laptop_work)
        laptop.start("work")
        await laptop_work.is_waiting.wait()
        viewer = await desk.client("desktop", desk_work)
        assert await viewer.session.apply(TakeTools())
        assert viewer.session.info.fact("tools") == "this machine"
        assert (await viewer.wait_end()).reason == "done"
        assert (await laptop.wait_end()).reason == "done"
        assert (laptop_work.subjects, desk_work.subjects) == (["a"], ["b"])
        assert "laptop ran it when the tools were moved to desktop" in str(desk.model.requests[1])
        assert laptop.session.info.fact("tools") == "desktop"
        assert len([text for text in laptop.notices("") if "desktop" in text]) == 1, laptop.notices("")
        assert "/take-tools" in laptop.notices("desktop")[0]
        called = [event.call.id for event in laptop.of(ToolCalled)]
        assert called == ["c1", "c2"]  # the turn was shown to its end
        assert await laptop.session.apply(TakeTools())
        assert laptop.session.info.fact("tools") == "this machine"
        await viewer.wait_for(lambda event: isinstance(event, Notice) and "laptop runs the tools" in event.text)


async def test_client_takes_the_tools_at_its_start(serve):
    desk_work = Work()
    async with serve(call("a", "c1"), ScriptedLine("done")) as desk:
        laptop = await desk.first("laptop", Work())
        desktop = await desk.client("desktop", desk_work, takes_tools=True)
        await laptop.wait_for(lambda event: isinstance(event, Notice) and "desktop runs the tools" in event.text)
        laptop.start("go")
        assert (await desktop.wait_end()).reason == "done"
        assert desk_work.subjects == ["a"]


async def test_viewer_answers_a_request_if_the_person_at_the_host_agreed(serve):
    laptop_work = Work()
    async with serve(call("a", "c1"), ScriptedLine("done")) as desk:
        laptop = await desk.first("laptop", laptop_work, policy=ASK_ALL, others_may_answer=True)
        viewer = await desk.client("desktop", Work())
        laptop.start("go")
        asked = await viewer.wait_for(lambda event: isinstance(event, QuestionAsked))
        assert asked.question.asked_by == "laptop" and "use probe" in asked.question.text
        assert viewer.session.answer(asked.question.id, QuestionReply("accept", {"answer": "Allow once"}))
        decided = await laptop.wait_for(lambda event: isinstance(event, PermissionDecided))
        assert (decided.decision.answer, decided.decision.scope, decided.decision.who) == ("allow", "once", "ada")
        assert (await viewer.wait_end()).reason == "done"
        assert laptop_work.subjects == ["a"]


async def test_first_answer_closes_the_request_everywhere(serve):
    async with serve(call("a", "c1"), ScriptedLine("done")) as desk:
        laptop = await desk.first("laptop", Work(), policy=ASK_ALL, others_may_answer=True)
        viewer = await desk.client("desktop", Work())
        laptop.start("go")
        await viewer.wait_for(lambda event: isinstance(event, QuestionAsked))
        asked = await laptop.wait_for(lambda event: isinstance(event, PermissionAsked))
        assert laptop.session.answer(asked.ask_id, Decision("deny", "person"))
        await viewer.wait_for(lambda event: isinstance(event, QuestionAnswered))
        assert (await viewer.wait_end()).reason == "done"
        assert laptop.of(PermissionDecided)[0].decision.who == ""


@pytest.mark.parametrize("danger", ["ordinary", "confirm"])
@pytest.mark.req("SH-3")
async def test_without_agreement_or_for_a_dangerous_call_only_the_host_answers(serve, danger):
    async with serve(call("a", "c1"), ScriptedLine("done")) as desk:
        agreed = {"others_may_answer": True} if danger == "confirm" else {}
        laptop = await desk.first("laptop", Work(), policy=ASK_ALL, danger=danger, **agreed)
        viewer = await desk.client("desktop", Work())
        laptop.start("go")
        await viewer.wait_for(lambda event: isinstance(event, Notice) and "laptop waits for an answer" in event.text)
        assert not viewer.of(QuestionAsked)
        asked = await laptop.wait_for(lambda event: isinstance(event, PermissionAsked))
        viewer.send(ApprovalAnswer(asked.ask_id, decision=Decision("allow", "person")))
        await viewer.wait_for(lambda event: isinstance(event, Notice) and "answered on the machine" in event.text)
        assert not laptop.of(PermissionDecided)
        assert laptop.session.answer(asked.ask_id, Decision("allow", "person"))
        assert (await viewer.wait_end()).reason == "done"


async def test_host_ignores_an_answer_that_the_server_passes_on_without_its_agreement(serve):
    async with serve(call("a", "c1"), ScriptedLine("done")) as desk:
        laptop = await desk.first("laptop", Work(), policy=ASK_ALL)
        laptop.start("go")
        asked = await laptop.wait_for(lambda event: isinstance(event, PermissionAsked))
        laptop.backend.on_message(ApprovalAnswer(asked.ask_id, decision=Decision("allow", "person"), who="eve"))
        assert laptop.session.answer(asked.ask_id, Decision("deny", "person"))
        decided = await laptop.wait_for(lambda event: isinstance(event, PermissionDecided))
        assert (decided.decision.answer, decided.decision.who) == ("deny", "")
        await laptop.wait_end()
