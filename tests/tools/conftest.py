"""Tools behind the real door, on a real workspace: a call goes in, its result and its events come out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ostler.app.tool_host import builtin_tools, other_tools
from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import Event
from ostler.core.protocols import Tool
from ostler.core.tools import ToolCall, ToolResult
from ostler.journal.memory_journal import MemoryJournal
from ostler.policy.verdict import Policy
from ostler.session.session import LocalSession
from ostler.settings.load import load
from ostler.testing.session_fixture import ALLOW_ALL
from ostler.tools import search
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace


class Room:
    """A workspace with every tool; nothing is asked unless a policy says so."""

    def __init__(self, root: Path, tools: Sequence[Tool[Any]] | None = None, policy: Policy = ALLOW_ALL) -> None:
        self.root = root
        self.workspace = LocalWorkspace(str(root))
        listed = builtin_tools(load(root, {"HOME": str(root)})) if tools is None else tools
        self.session = LocalSession(
            backend=ScriptedBackend([]),
            tools=LocalToolHost(listed, self.workspace, other_tools),
            journal=MemoryJournal("session-1"),
            policy=policy,
            cwd=str(root),
        )
        self._calls = 0

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, raw: str = "") -> ToolResult:
        """One call; `raw` is the text of arguments that came as no JSON object."""
        self._calls += 1
        return await self.session.call(ToolCall(f"call-{self._calls}", tool, arguments or {}, raw=raw))

    async def ok(self, tool: str, /, **arguments: Any) -> ToolResult:
        result = await self.call(tool, arguments)
        assert result.status == "ok", result.for_model
        return result

    async def fails(self, tool: str, /, **arguments: Any) -> str:
        """What the model is told of a call that must fail."""
        result = await self.call(tool, arguments)
        assert result.status == "failed", result.for_model
        assert result.fault
        assert result.fault.code not in ("", "bug")
        return result.for_model

    def events(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.session.events() if isinstance(event, kind)]

    def file(self, path: str, content: str | bytes = "") -> Path:
        made = self.root / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(content.encode() if isinstance(content, str) else content)
        return made


@pytest.fixture
def rooms(tmp_path: Path):
    """Makes workspaces with tools or a policy of their own; beside them is `outside/secret.txt`, not to be shown."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("SECRET needle\n")
    (tmp_path / "w").mkdir()
    made: list[Room] = []

    def make(tools: Sequence[Tool[Any]] | None = None, policy: Policy = ALLOW_ALL) -> Room:
        made.append(Room(tmp_path / "w", tools, policy))
        return made[-1]

    yield make
    for room in made:
        room.workspace.close()


@pytest.fixture
def room(rooms) -> Room:
    """A workspace with every tool, where all is allowed."""
    return rooms()


@pytest.fixture(params=["ripgrep", "native"])
def searcher(request, monkeypatch):
    """Both ways to search, one after the other."""
    if request.param == "native":
        monkeypatch.setattr(search, "find_ripgrep", lambda *_: None)
    elif not search.find_ripgrep():
        pytest.skip("there is no ripgrep here")
    return request.param
