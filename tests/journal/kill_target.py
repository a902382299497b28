"""Runs sessions in child processes until each is killed, and writes the number of every acknowledged record to a pipe.

Reads lines `root seed` from standard input; for each it writes the child's process id, and `dead` when it has ended.
"""

import asyncio
import os
import random
import sys
from pathlib import Path

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import MessageDone
from ostler.core.message import CallPart, Message
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall
from ostler.journal.file_journal import FileJournal
from ostler.journal.journal_store import JournalStore
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

ACKNOWLEDGED = int(sys.argv[1])


async def run_session(root: Path, rng: random.Random) -> None:
    store = JournalStore(root)
    journal = store.open(store.session("p", "s1"))
    append = FileJournal.append

    def acknowledge(envelope):
        append(journal, envelope)
        os.write(ACKNOWLEDGED, b"%d\n" % envelope.seq)

    journal.append = acknowledge

    async def act(context, prompt):
        for number in range(10_000):
            call = ToolCall(f"{journal.records()[-1].seq}-{number}", rng.choice(["change", "look"]), {})
            text = "x" * rng.choice([3, 300, 30_000])
            context.emit(MessageDone(Message(f"m{number}", (TextContent(text), CallPart(call)))))
            await context.run_tool(call)
            if rng.random() < 0.2:
                return

    tools = [FakeTool("change"), FakeTool("look", effects=False)]
    session = await open_test_session(
        ScriptedBackend([act] * 10_000), tools, LocalWorkspace(str(root)), journal=journal
    )
    while True:
        await session.start(make_prompt("go", session.new_id("prompt"))).wait()


for line in sys.stdin:
    folder, seed = line.split()
    child = os.fork()
    if child == 0:
        asyncio.run(run_session(Path(folder), random.Random(seed)))
    print(child, flush=True)
    os.waitpid(child, 0)
    print("dead", flush=True)
