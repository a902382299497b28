"""Makes one call several times in a session, for whoever measures this process: by ripgrep or without it."""

import asyncio
import json
import sys
import time
from pathlib import Path

from ostler.app.grounds import make_ground
from ostler.app.options import RunOptions
from ostler.app.tools import builtin_tools
from ostler.backends.scripted import ScriptedBackend
from ostler.session.session import Session
from ostler.settings.load import load
from ostler.testing.stagehand import open_session
from ostler.tools import search
from ostler.vocabulary.tools import ToolCall


async def session_in(root: Path) -> Session:
    """A session with the usual tools, where all is allowed."""
    settings = load(root, {"HOME": str(root)})
    ground = make_ground(root, settings, RunOptions(cwd=str(root)), attended=False)
    return await open_session(ScriptedBackend([]), builtin_tools(settings), ground)


async def main(root: str, tool: str, arguments: str, way: str, times: int) -> None:
    """Print the least time of a call in milliseconds, and what came of it."""
    if way == "native":
        search.ripgrep = lambda workspace="": None
    session, least, said = await session_in(Path(root)), float("inf"), ""
    for _ in range(times):
        begun = time.perf_counter()
        result = await session.call(ToolCall(session.new_id("call"), tool, json.loads(arguments)))
        least = min(least, time.perf_counter() - begun)
        if result.status != "ok":
            sys.exit(f"{tool} {way} failed: {result.for_model}")
        said = result.for_human.summary
    await session.aclose()
    print(json.dumps({"ms": least * 1000, "said": said}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])))
