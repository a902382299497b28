"""Opens the session of `ostler tool call`, `ostler tool calls` and `ostler permissions explain`."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from ostler import __version__
from ostler.access.active_agent import ActiveAgent
from ostler.access.session_policy import make_policy
from ostler.app.composition import compose
from ostler.app.project import Project
from ostler.app.tool_host import make_mcp_source, make_tool_host
from ostler.app.workspace import make_workspace
from ostler.backends.none import NoBackend
from ostler.core.errors import UsageError
from ostler.core.tools import ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.knowledge.agent_loader import DEFAULT_AGENT
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.settings.run_options import RunOptions
from ostler.tools.manual_calls import ManualCalls

if TYPE_CHECKING:
    from ostler.access.explanation import Explanation

Notify = Callable[[str], None]


@contextlib.asynccontextmanager
async def open_manual_calls(
    options: RunOptions, *, notify: Notify, with_mcp: bool = True, interactive: bool = False
) -> AsyncIterator[ManualCalls]:
    """Open a session with the settings, workspace, tool host and policy of a run without a model.

    With `interactive` the caller answers approval requests and questions. The mode of the options applies, no agent of
    the user does.
    """
    options = options if interactive else options.unattended()
    project = Project.load(options.cwd, trust=options.trust)
    for note in (*project.settings.notes, *map(str, project.settings.problems)):
        notify(note)
    workspace = make_workspace(project, options, interactive=interactive)
    mcp = make_mcp_source(project, interactive=interactive) if with_mcp else None
    host = make_tool_host(project, workspace, mcp=mcp)
    session = compose(
        project,
        backend=NoBackend(),
        tools=host,
        access=ActiveAgent(
            {**project.agents, DEFAULT_AGENT: builtin_agents()[DEFAULT_AGENT]},
            make_policy(project.settings, options, interactive=interactive),
            options,
            workspace.shell,
        ),
        standing_rules=project.grants(),
        journal=lambda: MemoryJournal("tool-call"),
    )
    await session.open(version=__version__, backend="none", options={})
    async with contextlib.aclosing(session):
        yield ManualCalls(session, host, workspace)


async def explain_call(options: RunOptions, call: ToolCall, *, interactive: bool) -> "Explanation":
    """Explain what the policy of a session decides about a call, without running it."""
    from ostler.access.explanation import explain, find_danger_source

    project = Project.load(options.cwd, trust=options.trust)
    policy = make_policy(project.settings, options, interactive=interactive)
    async with contextlib.aclosing(make_workspace(project, options, interactive=interactive)) as workspace:
        access = ActiveAgent(project.agents, policy, options, workspace.shell)
        access.set_option("agent", options.agent)
        permission = await make_tool_host(project, workspace).permission(call)
        if not access.allows_tool(call.tool):
            raise UsageError(f"agent {options.agent or options.mode} does not have the tool {call.tool}")
    command = str(call.arguments.get("command", "")) if call.tool == "bash" else ""
    source = find_danger_source(command, project.root, project.settings.config.security)
    return explain(permission, access.policy(), tuple(project.grants().rules()), danger_source=source)
