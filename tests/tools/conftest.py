"""Fixtures that run tool calls through the real tool host on a real workspace."""

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


class ToolHarness:
    """A workspace with every tool; everything is allowed unless a policy is given."""

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
        """Run one call; `raw` is the text of arguments that are not a JSON object."""
        self._calls += 1
        return await self.session.call(ToolCall(f"call-{self._calls}", tool, arguments or {}, raw=raw))

    async def ok(self, tool: str, /, **arguments: Any) -> ToolResult:
        result = await self.call(tool, arguments)
        assert result.status == "ok", result.for_model
        return result

    async def fails(self, tool: str, /, **arguments: Any) -> str:
        """Run a call that must fail and return the text for the model."""
        result = await self.call(tool, arguments)
        assert result.status == "failed", result.for_model
        assert result.fault
        assert result.fault.code not in ("", "bug")
        return result.for_model

    def events(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.session.events() if isinstance(event, kind)]

    def file(self, path: str, content: str | bytes = "") -> Path:
        created = self.root / path
        created.parent.mkdir(parents=True, exist_ok=True)
        created.write_bytes(content.encode() if isinstance(content, str) else content)
        return created


@pytest.fixture
def make_harness(tmp_path: Path):
    """Return a factory for harnesses; `outside/secret.txt` is next to their workspace."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("SECRET needle\n")
    (tmp_path / "w").mkdir()
    created: list[ToolHarness] = []

    def make(tools: Sequence[Tool[Any]] | None = None, policy: Policy = ALLOW_ALL) -> ToolHarness:
        created.append(ToolHarness(tmp_path / "w", tools, policy))
        return created[-1]

    yield make
    for harness in created:
        harness.workspace.close()


@pytest.fixture
def harness(make_harness) -> ToolHarness:
    """A workspace with every tool, where everything is allowed."""
    return make_harness()


@pytest.fixture(params=["ripgrep", "native"])
def searcher(request, monkeypatch):
    """Run the test with ripgrep and with the native search."""
    if request.param == "native":
        monkeypatch.setattr(search, "find_ripgrep", lambda *_: None)
    elif not search.find_ripgrep():
        pytest.skip("ripgrep is not installed")
    return request.param
