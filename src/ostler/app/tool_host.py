"""Builds the tool host with the built-in tools and the hooks."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ostler import __version__
from ostler.app.project import Project
from ostler.core.protocols import Tool, Workspace
from ostler.core.sessions import McpServerRequest
from ostler.core.tool_declarations import tool_names
from ostler.settings.effective import Settings
from ostler.tools.host import LocalToolHost

if TYPE_CHECKING:
    from ostler.mcp.configured_servers import ServerMaker
    from ostler.mcp.tool_source import McpToolSource


def make_tool_host(
    project: Project,
    workspace: Workspace,
    is_offered: Callable[[str], bool] = lambda tool: True,
    task_agents: Mapping[str, str] = MappingProxyType({}),
    mcp: "McpToolSource | None" = None,
    *,
    owns_mcp: bool = True,
    for_server: bool = False,
) -> LocalToolHost:
    """Build a tool host. `is_offered` selects the tools that models see; `task_agents` accept tasks.

    With `for_server` they also see those that replace shell commands: the server may have no use for a shell.

    With `owns_mcp` the MCP servers are started and stopped with the host; a child session uses those of its parent.
    """
    tools = project_tools(project, for_server=for_server)
    if task_agents:
        from ostler.tools.task import TaskTool

        tools.append(TaskTool(task_agents))
    if mcp is None:
        return LocalToolHost(tools, workspace, other_tools, is_offered, project.hooks)
    from ostler.mcp.tool_host import McpToolHost

    share = project.settings.config.limits.mcp_tools
    return McpToolHost(mcp, tools, workspace, other_tools, is_offered, project.hooks, owns_mcp=owns_mcp, share=share)


def make_mcp_source(
    project: Project, passed_in: Sequence[McpServerRequest] = (), *, interactive: bool
) -> "McpToolSource | None":
    """Return the MCP servers of the settings, and those passed in, as a source of tools; None if there are none."""
    if not project.settings.config.mcp and not passed_in:
        return None
    from ostler.mcp.configured_servers import mcp_source

    return mcp_source(project.path, make_servers(project.settings, interactive=interactive), passed_in)


def make_servers(settings: Settings, *, interactive: bool = False) -> "ServerMaker":
    """Return what makes the MCP servers of a project."""
    from ostler.credentials.store import open_credentials
    from ostler.mcp.configured_servers import ServerMaker

    return ServerMaker(settings, open_credentials, __version__, interactive)


def project_tools(project: Project, *, for_server: bool = False) -> list[Tool[Any]]:
    """Return the built-in tools, and the one that loads skills if there are any."""
    tools, knowledge = builtin_tools(project.settings, for_server=for_server), project.knowledge
    if knowledge.has_skills():
        from ostler.tools.skill import SkillTool

        tools.append(SkillTool(lambda: knowledge.skills))
    return tools


def builtin_tools(settings: Settings, *, for_server: bool = False) -> list[Tool[Any]]:
    """Return the tools offered to models; those that replace shell commands for a server, or without a shell."""
    security = settings.config.security
    by_shell: tuple[str, ...] = ("without-shell",) if security.allow_shell is False else ("with-shell",)
    if for_server:
        by_shell = (*by_shell, "without-shell")
    names = tool_names(lambda tool: tool.offered in ("always", *by_shell))
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
