"""Connections that are cut at any byte: the transcript is that of an uncut connection, and no call runs twice."""

import asyncio
import random
import time

import pytest
from tests.loop_server import LoopServer, make_plan
from tests.tiers import amount

from ostler.backends.remote.backend import RemoteBackend
from ostler.core.events import (
    MessageDone,
    MessageSnapshot,
    TextDelta,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.testing.fake_tool import FakeTool
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel
from ostler.testing.session_fixture import make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("SV-7")
TURNS = 3
WORDS = "".join(f"line {number} of a longer reply ✓\n" for number in range(12))


def script():
    """Return the lines of the model: each turn has text, two calls at once, one call, text."""
    lines = []
    for turn in range(TURNS):
        pair = tuple(ScriptedCall("probe", {"subject": f"{turn}-{name}"}, f"call-{turn}-{name}") for name in "ab")
        lines += [
            ScriptedLine(f"turn {turn}\n{WORDS}", pair),
            ScriptedLine("", (ScriptedCall("probe", {"subject": f"{turn}-c"}, f"call-{turn}-c"),)),
            ScriptedLine(f"{WORDS}the end of {turn}"),
        ]
    return lines


class Run:
    """A session with a server behind a proxy."""

    def __init__(self, folder, **options):
        self.runs = []
        self.model = ScriptedModel(script(), context_limit=1_000_000)
        limits = {name: options.pop(name) for name in tuple(options) if name not in ("seed", "cuts", "largest")}
        self.server = LoopServer(folder / "server", lambda name: self.model, **limits)
        self.proxy = self.server.proxy
        self.proxy.random = random.Random(options.get("seed", 0))
        self._cuts, self.proxy.largest = options.get("cuts", 0), options.get("largest", 4000)
        self.tool = FakeTool("probe", self._probe)
        self._folder = folder
        self.streamed = {}

    async def _probe(self, arguments, context):
        self.runs.append(arguments["subject"])
        await asyncio.sleep(0)
        return f"result of {arguments['subject']}"

    async def __aenter__(self):
        await self.server.start()
        self.backend = RemoteBackend(make_plan([self.tool.spec]), self.server.connect(through_proxy=True))
        self.session = await open_test_session(self.backend, [self.tool], LocalWorkspace(str(self._folder)))
        self._reading = asyncio.create_task(self._read(self.session.subscribe()))
        self.proxy.cuts_left = self._cuts
        return self

    async def __aexit__(self, *_):
        await self.session.aclose()
        await self._reading
        await self.server.stop()

    async def _read(self, events):
        """Collect the text of each message as a frontend shows it."""
        async for envelope in events:
            match envelope.event:
                case TextDelta(message_id, words):
                    self.streamed[message_id] = self.streamed.get(message_id, "") + words
                case MessageSnapshot(message_id, words):
                    self.streamed[message_id] = words
                case _:
                    pass

    async def turns(self, count=TURNS):
        for number in range(count):
            turn = self.session.start(make_prompt(f"prompt {number}", f"prompt-{number}"))
            ended = await asyncio.wait_for(turn.wait(), 30)
            assert ended.reason == "done", ended

    def transcript(self):
        """Return what the client shows, without the times and ids that differ from run to run."""
        return [entry for event in self.session.events() if (entry := describe(event))]

    def check(self):
        """Assert that everything happened once, on both sides."""
        assert sorted(self.runs) == sorted(set(self.runs))
        self.model.finish()
        hub = next(iter(self.server.hubs._hubs.values()))
        served = [entry for event in hub.session.events() if (entry := describe(event))]
        assert [entry for entry in served if entry[0] == "result"] == [
            entry for entry in self.transcript() if entry[0] == "result"
        ]
        assert [entry for entry in served if entry[0] == "prompt"] == [
            entry for entry in self.transcript() if entry[0] == "prompt"
        ]
        for event in self.session.events():
            if isinstance(event, MessageDone) and event.message.text and event.message.id in self.streamed:
                assert event.message.text.startswith(self.streamed[event.message.id])


def describe(event):
    match event:
        case TurnStarted(_, prompt):
            return "prompt", prompt.text
        case MessageDone(message):
            return "message", message.text, tuple(call.id for call in message.calls), message.truncated
        case ToolCalled(call):
            return "call", call.id
        case ToolStarted(call_id):
            return "started", call_id
        case ToolFinished(result):
            return "result", result.call_id, result.status, result.for_model
        case TurnEnded(_, reason):
            return "ended", reason
        case _:
            return None


def in_order(transcript):
    """Sort the entries of calls that run at once, between the messages."""
    groups = [[]]
    for entry in transcript:
        if entry[0] in ("call", "started", "result"):
            groups[-1].append(entry)
        else:
            groups += [[entry], []]
    return [sorted(set(group)) for group in groups]


@pytest.fixture
async def expected(tmp_path):
    """The transcript without cuts."""
    folder = tmp_path / "uncut"
    folder.mkdir()
    async with Run(folder) as run:
        await run.turns()
        run.check()
        return in_order(run.transcript())


async def cut_runs(folder, expected, seeds, cuts, largest):
    total = 0
    for seed in seeds:
        place = folder / f"run-{seed}"
        place.mkdir()
        async with Run(place, seed=seed, cuts=cuts, largest=largest) as run:
            await run.turns()
            run.check()
            assert in_order(run.transcript()) == expected, seed
            total += run.proxy.cuts
    return total


async def test_cuts_at_random_bytes_leave_no_trace(tmp_path, expected):
    assert await cut_runs(tmp_path, expected, range(4), cuts=8, largest=4000) >= 25


@pytest.mark.slow
async def test_a_thousand_cuts_leave_no_trace(tmp_path, expected):
    runs = amount(10, 85)
    assert await cut_runs(tmp_path, expected, range(100, 100 + runs), cuts=12, largest=4000) >= amount(100, 1000)


async def test_cuts_at_the_first_bytes_are_survived(tmp_path, expected):
    """The connection breaks during the handshake and the greeting, again and again."""
    assert await cut_runs(tmp_path, expected, [7], cuts=20, largest=700) == 20


async def test_half_open_connection_is_noticed(tmp_path, expected):
    """Nothing arrives any more, but nobody closes the connection."""
    async with Run(tmp_path, heartbeat=1.0) as run:
        await run.turns(1)
        run.proxy.silence_all()
        turn = run.session.start(make_prompt("prompt 1", "prompt-1"))
        assert (await asyncio.wait_for(turn.wait(), 30)).reason == "done"
        assert sorted(run.runs) == sorted(set(run.runs))


async def test_clock_that_jumps_changes_nothing(tmp_path, expected, monkeypatch):
    real, jumps = time.time, random.Random(3)
    monkeypatch.setattr(time, "time", lambda: real() + jumps.uniform(-86_400, 86_400))
    assert await cut_runs(tmp_path, expected, [11], cuts=8, largest=4000) >= 5


async def test_machine_that_sleeps_continues_when_it_wakes(tmp_path, expected, monkeypatch):
    """The client reads nothing for so long that the server gives the connection up."""
    monkeypatch.setattr("ostler.frontends.server.http_server.PING_SECONDS", 0.3)
    async with Run(tmp_path) as run:
        await run.turns(1)
        asleep = run.backend._stream._websocket._connection.transport
        asleep.pause_reading()
        hub = next(iter(run.server.hubs._hubs.values()))
        while hub.connections:
            await asyncio.sleep(0.05)
        asleep.resume_reading()
        turn = run.session.start(make_prompt("prompt 1", "prompt-1"))
        assert (await asyncio.wait_for(turn.wait(), 30)).reason == "done"
        assert sorted(run.runs) == sorted(set(run.runs))
