"""Builds the description of the workspace that Agent Zero gets: permissions, git status and files."""

import asyncio
import os
from collections.abc import Callable
from contextlib import aclosing

from ostler.app.project import Project
from ostler.backends.agent_zero.workspace_context import WorkspaceContext
from ostler.core.errors import OstlerError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import Workspace
from ostler.knowledge.workspace_description import (
    MAX_GIT_LINES,
    DescribedRepository,
    DescribedTool,
    WorkspaceDescriber,
    WorkspaceFacts,
)
from ostler.policy.verdict import Policy, evaluate_permission
from ostler.settings.run_options import RunOptions
from ostler.storage.redaction import make_redactor
from ostler.text.redact import is_sensitive_file
from ostler.wire.agent_zero.tool_requests import REQUESTED_TOOLS

_ANY_FILE, _ANY_COMMAND = "any-file", "any-command"
_TAGS = {"allow": "auto", "ask": "approval", "deny": "disabled"}
_NEEDS = {
    **dict.fromkeys(("read_file", "list_files", "search_text"), Need("read", _ANY_FILE)),
    **dict.fromkeys(("write_file", "replace_text", "apply_patch"), Need("write", _ANY_FILE)),
    "shell": Need("bash", _ANY_COMMAND),
}
_TOOL_NOTES = (
    "[auto] runs at once, [approval] asks the user first, [disabled] is refused. Paths are relative to the workspace.",
    "To request a tool, answer with this JSON and nothing else; several objects may follow each other:",
    '{"type": "tool_request", "tool_name": "read_file", "command": "read a.txt", "reason": "why it is needed", '
    '"payload": {"path": "a.txt"}}',
    'Each result comes as the next message: {"tool_result": {"tool_name", "ok", "output", "details"}}.',
)


class ZeroContextSource:
    """Describes the workspace with the permissions of the session at that moment."""

    def __init__(
        self,
        project: Project,
        workspace: Workspace,
        policy: Callable[[], Policy],
        host: str,
    ) -> None:
        self._project = project
        self._workspace = workspace
        self._policy = policy
        self._host = host
        config = project.settings.config.context
        redact = make_redactor(project.settings, os.environ).redact
        self._describer = WorkspaceDescriber(project.root, config, redact, self._may_read)

    async def build(self, *, requests_tools: bool = True) -> WorkspaceContext:
        """Describe the workspace. `requests_tools`: the agent requests tools in its answers and must know how."""
        git, tree = await asyncio.gather(self._repository(), asyncio.to_thread(self._describer.list_files))
        facts = WorkspaceFacts(
            self._head(),
            self._tools() if requests_tools else (),
            _TOOL_NOTES,
            self._host,
            git,
            self._project.settings.config.connection.instructions,
        )
        description = await asyncio.to_thread(self._describer.describe, facts, tree)
        return WorkspaceContext(description.text, description.signature, description.tree)

    def _head(self) -> tuple[tuple[str, str], ...]:
        connection = self._project.settings.config.connection
        return (
            ("project", connection.project),
            ("agent_profile", connection.agent_profile),
            ("security_mode", self._policy().profile),
        )

    def _tools(self) -> tuple[DescribedTool, ...]:
        allow_shell = self._project.settings.config.security.allow_shell is True
        policy = self._policy()
        return tuple(
            DescribedTool(name, _tag(policy, _NEEDS[name]) if allow_shell or name != "shell" else "disabled", payload)
            for name, payload in REQUESTED_TOOLS.items()
        )

    def _may_read(self, path: str) -> bool:
        """Return whether the rules allow to read a file without asking, whatever the security profile is."""
        verdict = evaluate_permission(Permission("", (Need("read", path),)), self._policy())
        return verdict.steps[0].action == "allow"

    def _is_shown(self, path: str) -> bool:
        return not is_sensitive_file(path) and self._may_read(path)

    async def _repository(self) -> DescribedRepository | None:
        """Return the branch and the changed files; None outside a repository, or if git fails."""
        config = self._project.settings.config.context
        if not config.include_git:
            return None
        from ostler.tools.git_changes import read_changes
        from ostler.tools.git_repo import open_repo

        seconds = config.git_timeout_seconds
        try:
            async with asyncio.timeout(seconds or None):
                repo = await open_repo(self._workspace, ".")
                changes = await read_changes(repo, MAX_GIT_LINES, self._is_shown)
        except TimeoutError:
            return DescribedRepository(problem=f"because git took longer than {seconds:g} s")
        except (OstlerError, OSError):
            return None
        lines = tuple(f"{status} {path}" for status, path in changes.files)
        return DescribedRepository(changes.branch, lines, changes.is_complete)


def _tag(policy: Policy, need: Need) -> str:
    return _TAGS[evaluate_permission(Permission("", (need,)), policy).action]


async def describe_workspace(options: RunOptions, *, interactive: bool, connector: bool = False) -> str:
    """Return the description that a session with these options sends; empty if context.enabled is false."""
    from ostler.access.active_agent import ActiveAgent
    from ostler.access.session_policy import make_policy
    from ostler.app.workspace import make_workspace
    from ostler.app.zero_backend import host_name

    project = Project.load(options.cwd, trust=options.trust).for_agent_zero()
    if not project.settings.config.context.enabled:
        return ""
    policy = make_policy(project.settings, options, interactive=interactive)
    access = ActiveAgent(project.agents, policy, options)
    if options.agent:
        access.set_option("agent", options.agent)
    async with aclosing(make_workspace(project, options, interactive=interactive)) as workspace:
        source = ZeroContextSource(project, workspace, access.policy, host_name())
        return (await source.build(requests_tools=not connector)).text
