"""Builds the tool host with the built-in tools and the hooks."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ostler.core.protocols import Tool, Workspace
from ostler.core.sessions import McpServerRequest
from ostler.settings.effective import Settings
from ostler.tools.host import LocalToolHost

if TYPE_CHECKING:
    from ostler.app.hooks import HookRunner
    from ostler.mcp.tool_source import McpToolSource


def make_tool_host(
    workspace: Workspace,
    settings: Settings,
    is_offered: Callable[[str], bool] = lambda tool: True,
    task_agents: Mapping[str, str] = MappingProxyType({}),
    mcp: "McpToolSource | None" = None,
    *,
    owns_mcp: bool = True,
) -> LocalToolHost:
    """Build a tool host. `is_offered` selects the tools that models see; `task_agents` accept tasks.

    With `owns_mcp` the MCP servers are started and stopped with the host; a child session uses those of its parent.
    """
    from ostler.app.project_knowledge import ProjectKnowledge

    tools = [*builtin_tools(settings), *ProjectKnowledge(workspace.root, settings).skill_tools()]
    if task_agents:
        from ostler.tools.task import TaskTool

        tools.append(TaskTool(task_agents))
    hooks = make_hook_runner(settings, workspace.root)
    if mcp is None:
        return LocalToolHost(tools, workspace, other_tools, is_offered, hooks)
    from ostler.app.mcp import McpToolHost

    return McpToolHost(mcp, tools, workspace, other_tools, is_offered, hooks, owns_mcp=owns_mcp)


def make_mcp_source(
    cwd: Path, settings: Settings, passed_in: Sequence[McpServerRequest] = (), *, interactive: bool
) -> "McpToolSource | None":
    """Return the MCP servers of the settings, and those passed in, as a source of tools; None if there are none."""
    if not settings.config.mcp and not passed_in:
        return None
    from ostler.app.mcp import mcp_source

    return mcp_source(cwd, settings, passed_in, interactive=interactive)


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
    from ostler.tools.edit import EditTool
    from ostler.tools.glob import GlobTool
    from ostler.tools.grep import GrepTool
    from ostler.tools.list import ListTool
    from ostler.tools.patch import PatchTool
    from ostler.tools.read import ReadTool
    from ostler.tools.todoread import TodoReadTool
    from ostler.tools.todowrite import TodoWriteTool
    from ostler.tools.write import WriteTool

    tools: list[Tool[Any]] = [
        ReadTool(),
        ListTool(),
        GrepTool(),
        GlobTool(),
        WriteTool(),
        EditTool(),
        PatchTool(),
        TodoReadTool(),
        TodoWriteTool(),
    ]
    security = settings.config.security
    if security.allow_shell is False:
        return [*tools, *shell_replacement_tools()]
    from ostler.tools.bash import BashTool

    return [*tools, BashTool(security.danger_patterns, security.blacklist_patterns)]


def shell_replacement_tools() -> list[Tool[Any]]:
    """Return the tools that replace common shell commands."""
    from ostler.tools.git_blame import GitBlameTool
    from ostler.tools.git_diff import GitDiffTool
    from ostler.tools.git_log import GitLogTool
    from ostler.tools.git_show import GitShowTool
    from ostler.tools.git_status import GitStatusTool
    from ostler.tools.mkdir import MkdirTool
    from ostler.tools.stat import StatTool
    from ostler.tools.write_chunk import WriteChunkTool

    return [
        StatTool(),
        MkdirTool(),
        WriteChunkTool(),
        GitStatusTool(),
        GitDiffTool(),
        GitLogTool(),
        GitShowTool(),
        GitBlameTool(),
    ]


def other_tools() -> list[Tool[Any]]:
    """Return tools that can be called by name but are not offered to models by default."""
    from ostler.knowledge.skills import SkillCatalogue
    from ostler.tools.skill import SkillTool
    from ostler.tools.task import TaskTool

    return [*shell_replacement_tools(), TaskTool(), SkillTool(lambda: SkillCatalogue((), lambda name: False))]
