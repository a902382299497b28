"""Builds the tool host with the built-in tools and the hooks."""

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ostler.core.protocols import Tool, Workspace
from ostler.core.tool_declarations import tool_names
from ostler.settings.effective import Settings
from ostler.tools.host import LocalToolHost

if TYPE_CHECKING:
    from ostler.app.hooks import HookRunner


def make_tool_host(
    workspace: Workspace,
    settings: Settings,
    is_offered: Callable[[str], bool] = lambda tool: True,
    task_agents: Mapping[str, str] = MappingProxyType({}),
) -> LocalToolHost:
    """Build a tool host. `is_offered` selects the tools that models see; `task_agents` accept tasks."""
    from ostler.app.project_knowledge import ProjectKnowledge

    tools = [*builtin_tools(settings), *ProjectKnowledge(workspace.root, settings).skill_tools()]
    if task_agents:
        from ostler.tools.task import TaskTool

        tools.append(TaskTool(task_agents))
    return LocalToolHost(tools, workspace, other_tools, is_offered, make_hook_runner(settings, workspace.root))


def make_hook_runner(settings: Settings, cwd: str) -> "HookRunner | None":
    """Return a runner for the configured hooks, or None if there are none."""
    from ostler.knowledge.hooks import claude_project_hooks, configured_hooks
    from ostler.knowledge.source_folders import find_sources

    sources = find_sources(cwd, os.environ)
    claude_hooks = claude_project_hooks(sources.workspace) if settings.trusted and not sources.workspace_is_home else []
    hooks = [*configured_hooks(settings), *claude_hooks]
    if not hooks:
        return None
    from ostler.app.hooks import HookRunner

    return HookRunner(hooks, sources.workspace)


def builtin_tools(settings: Settings) -> list[Tool[Any]]:
    """Return the tools offered to models; those that replace shell commands only if there is no shell."""
    security = settings.config.security
    by_shell = "without-shell" if security.allow_shell is False else "with-shell"
    names = tool_names(lambda tool: tool.offered in ("always", by_shell))
    arguments = {"bash": (security.danger_patterns, security.blacklist_patterns)}
    return [make_tool(name, *arguments.get(name, ())) for name in names]


def other_tools() -> list[Tool[Any]]:
    """Return tools that can be called by name but are not offered to models by default."""
    return [make_tool(name) for name in tool_names(lambda tool: tool.offered in ("without-shell", "on-request"))]


def make_tool(name: str, *arguments: object) -> Tool[Any]:
    """Make the tool of this name, whose class is in the module of the same name."""
    from ostler.tools.base_tool import BaseTool

    classes = vars(import_module(f"ostler.tools.{name}")).values()
    found = (entry for entry in classes if isinstance(entry, type) and issubclass(entry, BaseTool))
    tool: Any = next(entry for entry in found if vars(entry).get("name") == name)
    return tool(*arguments)  # type: ignore[no-any-return]  # mypy sees a module without types
