"""Builds the tool host with the built-in tools and the hooks."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ostler.app.project import Project
from ostler.core.protocols import Tool, Workspace
from ostler.settings.effective import Settings
from ostler.tools.host import LocalToolHost


def make_tool_host(
    project: Project,
    workspace: Workspace,
    is_offered: Callable[[str], bool] = lambda tool: True,
    task_agents: Mapping[str, str] = MappingProxyType({}),
) -> LocalToolHost:
    """Build a tool host. `is_offered` selects the tools that models see; `task_agents` accept tasks."""
    tools = [*builtin_tools(project.settings), *project.knowledge.skill_tools()]
    if task_agents:
        from ostler.tools.task import TaskTool

        tools.append(TaskTool(task_agents))
    return LocalToolHost(tools, workspace, other_tools, is_offered, project.hooks)


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
