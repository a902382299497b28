"""Plays sessions in children of its own until each is killed; every record that was acknowledged is named on a pipe.

Reads lines `root seed` from standard input; for each it writes the child's process id, and a line when it is dead.
"""

import asyncio
import os
import random
import sys
from pathlib import Path

from ostler.backends.scripted import ScriptedBackend
from ostler.journal.file import FileJournal
from ostler.journal.store import Store
from ostler.testing.fake_tool import FakeTool
from ostler.testing.stagehand import open_session, prompt
from ostler.vocabulary.events import MessageDone
from ostler.vocabulary.message import Called, Message
from ostler.vocabulary.prompt import Text
from ostler.vocabulary.tools import ToolCall
from ostler.workspace.ground import Workspace

ACKNOWLEDGED = int(sys.argv[1])


async def play(root: Path, chance: random.Random) -> None:
    store = Store(root)
    journal = store.open(store.place("p", "s1"))
    append = FileJournal.append

    def acknowledge(envelope):
        append(journal, envelope)
        os.write(ACKNOWLEDGED, b"%d\n" % envelope.seq)

    journal.append = acknowledge

    async def act(stage, said):
        for number in range(10_000):
            call = ToolCall(f"{journal.past()[-1].seq}-{number}", chance.choice(["change", "look"]), {})
            words = "x" * chance.choice([3, 300, 30_000])
            stage.emit(MessageDone(Message(f"m{number}", (Text(words), Called(call)))))
            await stage.run_tool(call)
            if chance.random() < 0.2:
                return

    tools = [FakeTool("change"), FakeTool("look", effects=False)]
    session = await open_session(ScriptedBackend([act] * 10_000), tools, Workspace(str(root)), journal=journal)
    while True:
        await session.start(prompt("go", session.new_id("prompt"))).wait()


for line in sys.stdin:
    folder, seed = line.split()
    child = os.fork()
    if child == 0:
        asyncio.run(play(Path(folder), random.Random(seed)))
    print(child, flush=True)
    os.waitpid(child, 0)
    print("dead", flush=True)
