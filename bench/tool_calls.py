"""Make a tool call several times in one session, with or without ripgrep; `bench.tools` measures this process."""

import asyncio
import json
import sys
import time
from pathlib import Path

from ostler.app.project import Project
from ostler.app.tool_host import builtin_tools
from ostler.app.workspace import make_workspace
from ostler.backends.none import NoBackend
from ostler.core.tools import ToolCall
from ostler.session.session import LocalSession
from ostler.settings.run_options import RunOptions
from ostler.testing.session_fixture import open_test_session
from ostler.tools import search


async def open_tool_session(root: Path) -> LocalSession:
    """Open a session with the default tools in which every call is allowed."""
    project = Project.elsewhere(str(root))
    workspace = make_workspace(project, RunOptions(cwd=str(root)), interactive=False)
    return await open_test_session(NoBackend(), builtin_tools(project.settings), workspace)


async def main(root: str, tool: str, arguments: str, variant: str, times: int) -> None:
    """Print the minimum time of a call in milliseconds, and the summary of its result."""
    if variant == "native":
        search.find_ripgrep = lambda workspace="": None
    session, least, summary = await open_tool_session(Path(root)), float("inf"), ""
    for _ in range(times):
        started = time.perf_counter()
        result = await session.call(ToolCall(session.new_id("call"), tool, json.loads(arguments)))
        least = min(least, time.perf_counter() - started)
        if result.status != "ok":
            sys.exit(f"{tool} {variant} failed: {result.for_model}")
        summary = result.for_human.summary
    await session.aclose()
    print(json.dumps({"ms": least * 1000, "summary": summary}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])))
