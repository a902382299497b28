"""A tool whose behaviour a test supplies, run by the real tool host."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ostler.core.display import Display
from ostler.core.permission import Danger, Need, Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolPlace, ToolResult, ToolSpec

Behaviour = Callable[[Mapping[str, Any], ToolContext], Awaitable[str]]


class FakeTool:
    """Accepts any arguments, needs permission for its own name, and returns the text of `behaviour`."""

    def __init__(
        self,
        name: str,
        behaviour: Behaviour | None = None,
        *,
        effects: bool = True,
        danger: Danger = "ordinary",
        runs_in: ToolPlace = "workspace",
    ) -> None:
        self.runs: list[Mapping[str, Any]] = []
        self._behaviour = behaviour
        self._danger = danger
        self.spec = ToolSpec(name, "other", f"{name}, for tests", {"type": "object"}, effects, runs_in=runs_in)

    def parse(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments

    async def permission(self, params: Mapping[str, Any], workspace: Workspace) -> Permission:
        subject = str(params.get("subject", self.spec.name))
        return Permission(f"use {self.spec.name}", (Need(self.spec.name, subject, self._danger, "it is dangerous"),))

    async def run(self, params: Mapping[str, Any], context: ToolContext) -> ToolResult:
        self.runs.append(params)
        text = await self._behaviour(params, context) if self._behaviour else f"{self.spec.name} ran"
        return ToolResult("", "ok", text, Display(text))
