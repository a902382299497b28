"""How the client continues after a cut: position, repeated messages, refusals, a log that cannot be continued."""

import asyncio

import pytest
from tests.backends.remote.conftest import make_backend
from tests.loop_server import LoopServer

from ostler.backends.remote import tool_role
from ostler.core.errors import BackendError
from ostler.core.events import (
    MessageDone,
    MessageSnapshot,
    Notice,
    PartialReply,
    Retrying,
    TextDelta,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.fake_tool import FakeTool
from ostler.testing.frame_server import FrameServer
from ostler.testing.session_fixture import make_prompt, open_test_session, run_turn
from ostler.wire.frames_shared import PROJECT_CHECKS, SessionSnapshot, SnapshotMessage
from ostler.wire.server_frames import Resync
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("SV-7")


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
def gives_up_soon(monkeypatch):
    """A client that is closed during a turn does not wait for a server that gets nothing from it any more."""
    monkeypatch.setattr("ostler.backends.remote.backend.CANCEL_SECONDS", 0.1)


def texts(session):
    return [event.message.text for event in session.events() if isinstance(event, MessageDone)]


async def test_prompt_that_was_cut_off_is_sent_again_and_starts_one_turn(connect):
    async def act(turn):
        turn.say("once")

    async with connect(act) as connected:
        server, receive = connected.server, connected.server._receive_message

        def lose(frame):
            """Take the message, but cut the connection before the acknowledgement."""
            server._receive_message = receive
            server.send = lambda frame: None
            receive(frame)
            del server.send
            server.cut()

        server._receive_message = lose
        _, ended = await run_turn(connected.session, "go")
        assert ended.reason == "done"
        assert texts(connected.session) == ["once"]
        assert len(server.messages) == 1 and len(server.hellos) == 2


async def test_call_whose_result_was_lost_is_answered_again_and_runs_once(connect):
    async def act(turn):
        await turn.call(ToolCall("call-1", "probe", {}))
        turn.say("done")

    async with connect(act) as connected:
        server, handle = connected.server, connected.server._handle

        def lose(frame):
            server._handle = handle
            if type(frame).__name__ != "ToolResultMessage":
                handle(frame)
                server._handle = lose
                return
            server.cut()

        server._handle = lose
        _, ended = await run_turn(connected.session, "go")
        assert (ended.reason, len(connected.tool.runs)) == ("done", 1)
        assert connected.results()["call-1"].output == "probe ran"


async def test_call_that_a_killed_client_had_started_has_an_unknown_outcome(tmp_path):
    """The next process does not run it again, and tells the server that nobody knows what happened."""
    running = asyncio.Event()

    async def forever(arguments, context):
        running.set()
        await asyncio.Event().wait()

    async def act(turn):
        await turn.call(ToolCall("call-1", "probe", {}))
        turn.say("I see.")

    workspace, tool = LocalWorkspace(str(tmp_path)), FakeTool("probe", forever)
    async with FrameServer([act]) as server:
        first = await open_test_session(make_backend(server, [tool.spec]), [tool], workspace)
        first.start(make_prompt("go"))
        await running.wait()
        journal = MemoryJournal("session-1", first._journal.envelopes)  # as it is on disk now
        server.cut()
        await first._backend._stream.aclose()
        again = FakeTool("probe")
        second = await open_test_session(make_backend(server, [again.spec]), [again], workspace, journal=journal)
        await until(lambda: any(isinstance(e, MessageDone) and e.message.text == "I see." for e in second.events()))
        assert again.runs == []
        assert [result.status for result in server.results if result.tool_call_id == "call-1"][-1] == "unknown"
        results = [event.result for event in second.events() if isinstance(event, ToolFinished)]
        assert [(result.call_id, result.status) for result in results] == [("call-1", "unknown")]
        await second.aclose()
        first._turn.cancel()
        await first._turn.wait()
        await first._close_parts(lambda: None)


@pytest.mark.parametrize("reason", ["epoch", "ahead", "expired"])
async def test_log_that_cannot_be_continued_is_replaced_by_a_snapshot(connect, reason):
    async def act(turn):
        turn.say("seen")

    async with connect(act) as connected:
        await run_turn(connected.session, "go")
        server = connected.server
        told = [
            SnapshotMessage("user", "go", 1, "p1"),
            SnapshotMessage("assistant", "seen", 2, server.log[1].message.id),
            SnapshotMessage("user", "asked elsewhere", 3, "p2"),
            SnapshotMessage("assistant", "answered while away", 4, "m2"),
        ]
        server.epoch = "epoch-2"
        server.send(Resync("session-far", reason, 40, "epoch-2", SessionSnapshot(messages=tuple(told))))
        await until(lambda: "answered while away" in texts(connected.session))
        assert texts(connected.session) == ["seen", "answered while away"]
        notices = [event.text for event in connected.session.events() if isinstance(event, Notice)]
        assert any("cannot be continued" in text for text in notices)
        assert connected.backend._position.resume_point.last_seq == 40


async def test_resync_ends_a_turn_that_is_over_on_the_server(connect):
    started = asyncio.Event()

    async def act(turn):
        started.set()
        await asyncio.Event().wait()

    async with connect(act) as connected:
        turn = connected.session.start(make_prompt("go"))
        await started.wait()
        message_id = connected.server.messages[0].client_message_id
        told = (SnapshotMessage("user", "go", 1, message_id), SnapshotMessage("assistant", "all of it", 2, "m"))
        connected.server.send(Resync("session-far", "expired", 9, "epoch-1", SessionSnapshot(messages=told)))
        assert (await asyncio.wait_for(turn.wait(), 20)).reason == "done"
        assert texts(connected.session) == ["all of it"]


async def test_reply_that_a_restarted_server_requests_again_replaces_what_was_shown(connect):
    """A server that was killed in the middle of a reply continues the turn with another message instead of it."""

    async def act(turn):
        turn.say("half a rep")
        await until(lambda: "half a rep" in shown)
        turn._server.emit(PartialReply(turn.message_id, restarts=True))
        turn._server.emit(MessageDone(Message("another", (TextContent("the whole reply"),))))
        turn._text = ""

    shown = ""
    async with connect(act) as connected:
        turn = connected.session.start(make_prompt("go"))
        async for envelope in connected.session.subscribe():
            match envelope.event:
                case TextDelta(_, text):
                    shown += text
                case MessageSnapshot(_, text):
                    shown = text
                case TurnEnded():
                    break
                case _:
                    pass
        assert (await turn.wait()).reason == "done"
        assert texts(connected.session) == ["the whole reply"] and shown == ""


@pytest.mark.parametrize("status", [429, 500, 502, 503, 302])
async def test_refusal_that_may_pass_is_tried_again(connect, status):
    async def act(turn):
        turn.say("back")

    async with connect(act) as connected:
        server, answer, refused = connected.server, connected.server._answer, []

        def refuse(connection, request):
            refused.append(request.path)
            return connection.respond(status, "busy") if len(refused) < 4 else answer(connection, request)

        server._answer = refuse
        server.cut()
        _, ended = await run_turn(connected.session, "go")
        assert ended.reason == "done" and len(refused) == 4


@pytest.mark.parametrize("answers", ["late", "never", "not connected"])
async def test_cancelled_turn_ends_when_the_server_has_ended_it(connect, monkeypatch, answers):
    """The end is waited for; if it does not come, the user learns that the turn may go on there."""
    monkeypatch.setattr("ostler.backends.remote.backend.CANCEL_SECONDS", 20 if answers == "late" else 0.1)
    started, may_end = asyncio.Event(), asyncio.Event()

    async def act(turn):
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await may_end.wait()
            raise

    async with connect(act) as connected:
        turn = connected.session.start(make_prompt("go"))
        await started.wait()
        if answers == "not connected":
            connected.server._server.close(close_connections=True)
            await until(lambda: not connected.backend._stream.is_connected)
        turn.cancel()
        waiting = asyncio.create_task(turn.wait())
        if answers == "late":
            await until(lambda: connected.server._turn.cancelling())
            assert not (await asyncio.wait([waiting], timeout=0.2))[0]
            may_end.set()
        assert (await asyncio.wait_for(waiting, 20)).reason == "cancelled"
        notices = [event.text for event in connected.session.events() if isinstance(event, Notice)]
        assert any("has not ended the turn" in text for text in notices) is (answers != "late")
        may_end.set()


async def test_session_of_a_folder_whose_name_is_not_utf8(tmp_path):
    server = LoopServer(tmp_path, lambda name: None)
    await server.start()
    client = server.connect()
    created = await client.create("/w\udcff", "", "1")
    assert [session.session_id for session in await client.sessions()] == [created.session_id]
    await client.aclose()
    await server.stop()


async def test_restarted_server_is_waited_for(connect):
    """The client tries again until the server is back, and says so."""

    async def act(turn):
        turn.say("back")

    async with connect(act) as connected:
        server, seen = connected.server, connected.session.subscribe(since=2**62)
        port = int(server.url.split(":")[2].partition("/")[0])
        server._server.close()
        server.cut()
        await server._server.wait_closed()
        turn = connected.session.start(make_prompt("go"))
        attempts = 0
        async for envelope in seen:
            if isinstance(envelope.event, Retrying):
                attempts += 1
                assert "127.0.0.1" in envelope.event.reason
            if attempts == 4:
                break
        await server.start(port)
        assert (await asyncio.wait_for(turn.wait(), 20)).reason == "done"
        assert texts(connected.session) == ["back"]
        seen.close()


async def test_refused_token_is_not_tried_again(connect):
    async def act(turn):
        turn.say("never")

    async with connect(act) as connected:
        connected.server._token = "another"
        connected.server.cut()
        _, ended = await run_turn(connected.session, "go")
        assert ended.reason == "failed"
        assert "refused the token" in ended.fault.message
        hellos = len(connected.server.hellos)
        await asyncio.sleep(0.2)
        assert len(connected.server.hellos) == hellos == 1


async def test_deleted_session_is_not_tried_again(connect):
    async with connect() as connected:
        connected.server._answer = lambda connection, request: connection.respond(404, "{}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ostler.testing.frame_server.SESSION", "another")
            connected.server.cut()
            await until(lambda: connected.backend._stream.error)
        assert "no such session" in str(connected.backend._stream.error)


async def test_first_connection_that_cannot_be_used_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(tool_role, "FEATURES", ())  # then a server answers without them, like an old one
    async with FrameServer([]) as server:
        backend = make_backend(server, [])
        with pytest.raises(BackendError, match="does not send events"):
            await open_test_session(backend, [], LocalWorkspace(str(tmp_path)))
        assert server.hellos
        await until(lambda: not server.connections)


async def test_first_connection_is_not_repeated(tmp_path):
    server = FrameServer([], token="secret")
    await server.start()
    backend = make_backend(server, [])
    with pytest.raises(BackendError, match="refused the token"):
        await open_test_session(backend, [], LocalWorkspace(str(tmp_path)))
    await server.stop()


async def test_resumed_session_shows_what_happened_meanwhile(tmp_path):
    journal = MemoryJournal("session-1")

    async def act(turn):
        turn.say("first")

    async def other(turn):
        turn.say("second")

    tool, workspace = FakeTool("probe"), LocalWorkspace(str(tmp_path))
    async with FrameServer([act, other]) as server:
        first = await open_test_session(make_backend(server, [tool.spec]), [tool], workspace, journal=journal)
        await run_turn(first, "one")
        await first.aclose()
        await until(lambda: not server.connections)
        server.receive(make_prompt("two", "far-2"))
        await until(lambda: isinstance(server.log[-1], TurnEnded) and not server.turns)
        second = await open_test_session(make_backend(server, [tool.spec]), [tool], workspace, journal=journal)
        await until(lambda: len(texts(second)) == 2 and second.turn is None)
        assert texts(second) == ["first", "second"]
        prompts = [event.prompt.text for event in second.events() if isinstance(event, TurnStarted)]
        assert prompts == ["one", "two"]
        await second.aclose()


@pytest.mark.usefixtures("gives_up_soon")
async def test_message_that_was_taken_before_a_crash_is_not_shown_twice(tmp_path):
    """The message is in the journal, but the position after it is not."""
    journal = MemoryJournal("session-1")

    async def act(turn):
        turn.say("only once")

    workspace = LocalWorkspace(str(tmp_path))
    async with FrameServer([act]) as server:
        first = await open_test_session(make_backend(server, []), [], workspace, journal=journal)
        await run_turn(first, "one")
        await first.aclose()
        cut = next(i for i, e in enumerate(journal.envelopes) if isinstance(e.event, MessageDone)) + 1
        torn = MemoryJournal("session-1", journal.envelopes[:cut])
        second = await open_test_session(make_backend(server, []), [], workspace, journal=torn)
        server.emit(MessageDone(Message("later", (TextContent("more"),))))
        await until(lambda: "more" in texts(second))
        assert texts(second) == ["only once", "more"]
        await second.aclose()


@pytest.mark.usefixtures("gives_up_soon")
async def test_turn_of_a_killed_client_is_one_turn_for_the_next_process(tmp_path):
    """The next process continues the turn: nothing is shown as cancelled, and nothing twice."""
    hold = asyncio.Event()

    async def act(turn):
        turn.say("first ")
        await hold.wait()
        turn.say("and second")

    workspace = LocalWorkspace(str(tmp_path))
    async with FrameServer([act]) as server:
        journal = await killed_in_turn(server, workspace)
        again = MemoryJournal("session-1", journal.envelopes)
        second = await open_test_session(make_backend(server, []), [], workspace, journal=again, takeover=True)
        hold.set()
        assert (await asyncio.wait_for(second.turn.wait(), 20)).reason == "done"
        kinds = [type(e).__name__ for e in second.events() if isinstance(e, TurnStarted | TurnEnded | MessageDone)]
        assert kinds == ["TurnStarted", "MessageDone", "TurnEnded"]
        assert texts(second) == ["first and second"]
        await second.aclose()


@pytest.mark.parametrize("ends", ["while nobody is connected", "never arrives"])
async def test_turn_that_was_interrupted_before_its_start_was_saved(tmp_path, ends):
    """Only the message is known: the server says what became of it."""

    async def act(turn):
        turn.say("all of it")

    workspace = LocalWorkspace(str(tmp_path))
    async with FrameServer([act]) as server:
        if ends == "never arrives":
            server._receive_message = lambda frame: None
        first = await open_test_session(make_backend(server, []), [], workspace)
        turn = first.start(make_prompt("go"))
        await until(lambda: first._backend._position.message)
        journal = MemoryJournal("session-1", first._journal.envelopes)
        if ends == "never arrives":
            del server._receive_message
            server._seen.clear()
        else:
            await turn.wait()
        first._backend._stream._websocket.send = lambda text: None
        await first.aclose()
        second = await open_test_session(make_backend(server, []), [], workspace, journal=journal, takeover=True)
        await until(lambda: second.turn is None)
        reasons = [event.reason for event in second.events() if isinstance(event, TurnEnded)]
        assert (*reasons, texts(second)) == (("cancelled", []) if ends == "never arrives" else ("done", ["all of it"]))
        await second.aclose()


async def killed_in_turn(server, workspace):
    """Let a client start a turn, and cut it off in the middle. Return its journal."""
    first = await open_test_session(make_backend(server, []), [], workspace)
    first.start(make_prompt("go"))
    await until(lambda: first._backend._position.turn)
    journal = MemoryJournal("session-1", first._journal.envelopes)
    first._backend._stream._websocket.send = lambda text: None
    await first.aclose()
    return journal


class FolderChecks:
    seconds = 60.0

    async def find(self, edited, *, others):
        return ["make test"] if edited or others else []

    async def forget_changes(self):
        pass


@pytest.mark.usefixtures("gives_up_soon")
async def test_edits_of_a_killed_client_are_checked_by_the_next_process(tmp_path):
    hold, named = asyncio.Event(), []

    async def act(turn):
        await turn.call(ToolCall("call-1", "probe", {}))
        await hold.wait()
        check = ToolCall("ask-1", PROJECT_CHECKS, {}, origin="validation")
        await turn._server.run_call(check)
        named.extend(result.data for result in turn._server.results if result.tool_call_id == "ask-1")

    workspace, tool = LocalWorkspace(str(tmp_path)), FakeTool("probe")
    async with FrameServer([act]) as server:

        def backend():
            return make_backend(server, [tool.spec], checks=FolderChecks())

        first = await open_test_session(backend(), [tool], workspace)
        first.start(make_prompt("go"))
        await until(lambda: server.results and not first._backend._calls._running)
        journal = MemoryJournal("session-1", first._journal.envelopes)
        first._backend._stream._websocket.send = lambda text: None
        await first.aclose()
        second = await open_test_session(backend(), [tool], workspace, journal=journal, takeover=True)
        hold.set()
        await until(lambda: second.turn is None)
        assert named == [{"commands": ["make test"], "seconds": 60.0}]
        assert len(tool.runs) == 1
        await second.aclose()
