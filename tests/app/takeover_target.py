"""Opens a session, or takes one over, with a scripted model; prints what happened as JSON lines.

Usage: `takeover_target.py start|continue CWD SESSION`. `start` releases the session when standard input ends. With
`DATABASE` in the environment the session is in that database, otherwise in files.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from ostler.app.session_manager import LocalSessionManager
from ostler.core.events import ToolFinished, ToolStarted
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import OpenSessionRequest
from ostler.models.model_choice import ModelChoice
from ostler.settings.run_options import RunOptions
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_store import SqliteSessions
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel

FIRST = ScriptedCall("bash", {"command": "echo first >> runs", "description": "first"}, "call-first")
SECOND = ScriptedCall("bash", {"command": "echo second >> runs; cat fifo", "description": "second"}, "call-second")
THIRD = ScriptedCall("bash", {"command": "echo third >> runs", "description": "third"}, "call-third")


def report(**fields):
    print(json.dumps(fields), flush=True)


def make_manager(cwd, lines):
    model = ScriptedModel(lines)
    choice = ModelChoice("scripted", lambda name: model)
    store = None
    if path := os.environ.get("DATABASE"):
        store = SqliteSessions(SqliteDatabase(Path(path))).of("alice")
    options = RunOptions(cwd, yolo=True, write=True)
    return model, LocalSessionManager(options, lambda message: None, choice, store=store)


async def start(cwd):
    _, manager = make_manager(cwd, [ScriptedLine("One.", (FIRST,)), ScriptedLine("Two.", (SECOND,))])
    session = await manager.open(OpenSessionRequest(cwd, interactive=False))
    report(session=session.id)
    subscription = session.subscribe()
    turn = session.start(Prompt("p1", (TextContent("go"),)))
    async for envelope in subscription:
        if isinstance(envelope.event, ToolStarted) and envelope.event.call_id == "call-second":
            break
    report(started="call-second")
    await asyncio.to_thread(sys.stdin.read)
    await session.release()
    report(ended=(await turn.wait()).reason)


async def go_on(cwd, session_id):
    model, manager = make_manager(cwd, [ScriptedLine("Three.", (THIRD,)), ScriptedLine("Done.")])
    session = await manager.open(OpenSessionRequest(cwd, resume=session_id, interactive=False, takeover=True))
    ended = await session.turn.wait() if session.turn else None
    results = [event.result for event in session.events() if isinstance(event, ToolFinished)]
    seen = str(model.requests[0]) if model.requests else ""
    await session.aclose()
    report(
        ended=ended and ended.reason,
        turn=ended and ended.turn_id,
        results={result.call_id: result.status for result in results},
        tells_the_model="call-second" in seen and "unknown" in seen.lower(),
    )


asyncio.run(start(sys.argv[2]) if sys.argv[1] == "start" else go_on(*sys.argv[2:]))
