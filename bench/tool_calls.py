"""Makes one call several times in a session, for whoever measures this process: by ripgrep or without it."""

import asyncio
import json
import sys
import time
from pathlib import Path

from ostler.app.run_options import RunOptions
from ostler.app.session_workspace import make_workspace
from ostler.app.tool_host import builtin_tools
from ostler.backends.scripted import ScriptedBackend
from ostler.core.tools import ToolCall
from ostler.session.session import LocalSession
from ostler.settings.load import load
from ostler.testing.session_fixture import open_test_session
from ostler.tools import search


async def open_tool_session(root: Path) -> LocalSession:
    """A session with the usual tools, where all is allowed."""
    settings = load(root, {"HOME": str(root)})
    workspace = make_workspace(root, settings, RunOptions(cwd=str(root)), interactive=False)
    return await open_test_session(ScriptedBackend([]), builtin_tools(settings), workspace)


async def main(root: str, tool: str, arguments: str, variant: str, times: int) -> None:
    """Print the least time of a call in milliseconds, and what came of it."""
    if variant == "native":
        search.find_ripgrep = lambda workspace="": None
    session, least, said = await open_tool_session(Path(root)), float("inf"), ""
    for _ in range(times):
        begun = time.perf_counter()
        result = await session.call(ToolCall(session.new_id("call"), tool, json.loads(arguments)))
        least = min(least, time.perf_counter() - begun)
        if result.status != "ok":
            sys.exit(f"{tool} {variant} failed: {result.for_model}")
        said = result.for_human.summary
    await session.aclose()
    print(json.dumps({"ms": least * 1000, "said": said}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])))
