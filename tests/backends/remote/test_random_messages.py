"""A server that sends valid messages with unusual content: the client shows all of it and the turn ends."""

import asyncio
import io
import json
import random
from typing import get_args

import msgspec.inspect
import pytest
from tests.random_values import random_value
from tests.tiers import amount

from ostler.core.events import EVENT_TYPES, Notice, TurnEnded
from ostler.frontends.headless.outputs import TextOutput
from ostler.journal.file_journal import FileJournal
from ostler.rendering.style import Styler
from ostler.rendering.transcript_renderer import TranscriptRenderer
from ostler.testing.frame_server import SESSION
from ostler.testing.session_fixture import make_prompt
from ostler.wire.server_frames import EventMessage, Resync, ServerFrame, SessionCreated, ToolCallMessage

pytestmark = pytest.mark.req("SV-6")
EVENTS = [msgspec.inspect.type_info(kind) for kind in EVENT_TYPES if kind is not TurnEnded]
OTHERS = [kind for kind in get_args(ServerFrame) if kind not in (EventMessage, SessionCreated)]
MESSAGES = [msgspec.inspect.type_info(kind) for kind in OTHERS]


def send_event(server, chooser):
    event = random_value(chooser.choice(EVENTS), chooser)
    server.log.append(Notice("info", "its place in the log"))
    frame = {"type": "event", "sessionId": SESSION, "seq": len(server.log), "epoch": server.epoch, "time": 1.0}
    server.send_text(json.dumps({**frame, "event": event}))


def send_other(server, chooser):
    kind = chooser.choice(MESSAGES)
    frame = {**random_value(kind, chooser), "sessionId": chooser.choice([SESSION, SESSION, SESSION, "another"])}
    if kind.cls is ToolCallMessage:
        frame |= {"host": {"id": "session-1"}, "name": chooser.choice(["probe", "rm"])}
    elif kind.cls is Resync:
        frame |= {"seq": len(server.log), "epoch": server.epoch, "snapshot": {"turnId": "far-turn-1"}}
    server.send_text(json.dumps(frame))


@pytest.mark.parametrize("seed", range(amount(10, 200)))
@pytest.mark.parametrize("send", [send_event, send_other])
async def test_all_of_it_is_shown_and_the_turn_ends(connect, tmp_path, seed, send):
    chooser = random.Random(seed)

    async def act(turn):
        for _ in range(200):
            send(turn._server, chooser)
            await asyncio.sleep(0)
        turn.say("the end")

    journal = FileJournal(tmp_path / "journal", "session-1")
    async with connect(act, journal=journal) as connected:
        plain, text = Styler(enabled=False), io.StringIO()
        output, renderer = TextOutput(text, plain), TranscriptRenderer(plain)
        turn = connected.session.start(make_prompt("go"))
        async for envelope in connected.session.subscribe():
            output.on_event(envelope)
            renderer.render(envelope.event)
            if isinstance(envelope.event, TurnEnded) and envelope.event.turn_id == turn.id:
                break
        assert envelope.event.reason == "done", envelope.event.fault
        assert "the end" in text.getvalue()
