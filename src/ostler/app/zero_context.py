"""Builds the description of the workspace that Agent Zero gets: permissions, git status and files."""

import asyncio
import os
from collections.abc import Callable
from itertools import islice

from ostler.app.project import Project
from ostler.backends.agent_zero.workspace_context import WorkspaceContext
from ostler.core.errors import OstlerError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import Workspace
from ostler.knowledge.context_files import MAX_REFUSED
from ostler.knowledge.workspace_description import MAX_GIT_LINES, DescribedTool, WorkspaceDescriber, WorkspaceFacts
from ostler.policy.verdict import Policy, evaluate_permission
from ostler.settings.run_options import RunOptions
from ostler.storage.redaction import make_redactor
from ostler.text.redact import is_sensitive_file

_ANY_FILE, _ANY_COMMAND = "any-file", "any-command"
_TAGS = {"allow": "auto", "ask": "approval", "deny": "disabled"}
# Name, need and arguments of the tools in the request schema.
_TOOLS = (
    ("read_file", Need("read", _ANY_FILE), "path, start_line?, end_line?"),
    ("list_files", Need("read", _ANY_FILE), "path?"),
    ("search_text", Need("read", _ANY_FILE), "query, path?"),
    ("write_file", Need("write", _ANY_FILE), "path, content"),
    ("replace_text", Need("write", _ANY_FILE), "path, old, new, count?"),
    ("apply_patch", Need("write", _ANY_FILE), "patch (a unified diff)"),
    ("shell", Need("bash", _ANY_COMMAND), "command"),
)
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
        git = await self._git_lines()
        facts = WorkspaceFacts(
            self._head(),
            self._tools() if requests_tools else (),
            _TOOL_NOTES,
            self._host,
            git,
        )
        description = await asyncio.to_thread(self._describer.describe, facts)
        return WorkspaceContext(description.text, description.signature, description.tree)

    def _head(self) -> tuple[tuple[str, str], ...]:
        connection = self._project.settings.config.connection
        return (
            ("project", connection.project),
            ("agent_profile", connection.agent_profile),
            ("instructions", connection.instructions),
            ("security_mode", self._policy().profile),
        )

    def _tools(self) -> tuple[DescribedTool, ...]:
        allow_shell = self._project.settings.config.security.allow_shell is True
        policy = self._policy()
        return tuple(
            DescribedTool(name, _tag(policy, need) if allow_shell or name != "shell" else "disabled", payload)
            for name, need, payload in _TOOLS
        )

    def _may_read(self, path: str) -> bool:
        """Return whether the rules allow to read a file without asking, whatever the security profile is."""
        verdict = evaluate_permission(Permission("", (Need("read", path),)), self._policy())
        return verdict.steps[0].action == "allow"

    def _is_shown(self, path: str) -> bool:
        return not is_sensitive_file(path) and self._may_read(path)

    async def _git_lines(self) -> tuple[str, ...] | None:
        """Return the branch and the changed files; None outside a repository, or if git fails."""
        if not self._project.settings.config.context.include_git:
            return None
        from ostler.tools.git_repo import RepoParams, open_repo
        from ostler.tools.git_status import GitStatusTool

        try:
            repo = await open_repo(self._workspace, ".")
            result = await GitStatusTool().run_in_repo(RepoParams(), repo)
        except (OstlerError, OSError):
            return None
        data = result.data["data"] if isinstance(result.data, dict) else {}
        files = sorted((file["path"], file["status"]) for file in data.get("files", ()))
        shown = (f"{status} {path}" for path, status in files[:MAX_REFUSED] if self._is_shown(path))
        return (str(data.get("branch") or ""), *islice(shown, MAX_GIT_LINES + 1))


def _tag(policy: Policy, need: Need) -> str:
    return _TAGS[evaluate_permission(Permission("", (need,)), policy).action]


async def describe_workspace(options: RunOptions, *, interactive: bool) -> str:
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
    workspace = make_workspace(project, options, interactive=interactive)
    source = ZeroContextSource(project, workspace, access.policy, host_name())
    try:
        return (await source.build()).text
    finally:
        await workspace.aclose()
