"""Runs the user's hook programs around tool calls and turns; a failing guard hook denies."""

import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from ostler.core.commands import CommandRequest, CommandResult
from ostler.core.errors import ToolError
from ostler.core.events import Notice, Reminded, TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import BackendContext
from ostler.core.tool_declarations import tool_names
from ostler.core.tools import ToolCall, ToolResult
from ostler.hooks.hook_answer import added_context, failure, objection
from ostler.knowledge.hooks import HookEvent, HookSpec, hook_input
from ostler.knowledge.source_folder import SourceFolder
from ostler.knowledge.trust_items import hash_programs
from ostler.settings.trust import TrustStore

MAX_CONTEXT_LENGTH = 10_000
MAX_NAMES_LENGTH = 200
TRUST = "ostler trust"


# Workspaces in which a tool or a command of this process may have changed files. All runners of a session share this.
_changed_workspaces: set[str] = set()


class HookRunner:
    """Runs the hooks of one session in its workspace, with the event as JSON on standard input."""

    def __init__(self, hooks: Sequence[HookSpec], folder: SourceFolder, trust: TrustStore | None = None) -> None:
        """Hash the hooks' programs in the workspace now: one that the model changes later is not run.

        Changes by the model are recorded in `trust`, for later sessions.
        """
        self._hooks = hooks
        self._trust = trust
        self._folder = folder
        self._cwd = folder.root
        self._programs = {hook: hash_programs(folder, hook.command) for hook in hooks}

    async def before(self, call: ToolCall, context: BackendContext) -> str:
        """Return why a call is denied, or an empty string. A hook that fails denies the call."""
        payload = {"tool": call.tool, "arguments": msgspec.to_builtins(call.arguments)}
        reason, _ = await self._ask_all("before_tool", call.tool, payload)
        if not reason and call.tool not in tool_names(lambda tool: not tool.effects):
            self.note_changes(context)
        if reason:
            context.emit(Notice("warning", f"a hook denied {call.tool}: {reason}"))
        return reason

    async def after(self, call: ToolCall, result: ToolResult, context: BackendContext) -> None:
        """Report the objections of hooks to the model, after the call."""
        payload = {"tool": call.tool, "arguments": msgspec.to_builtins(call.arguments)}
        payload |= {"result": {"status": result.status, "text": result.for_model}}
        for reason in await self._collect_objections("after_tool", call.tool, payload, context):
            context.emit(Reminded(f"The user's hook reported about your {call.tool} call: {reason}"))

    def note_changes(self, context: BackendContext) -> None:
        """Run the hooks that could load a file of the workspace in the sandbox from now on, and report it once."""
        names = self._names_of_exposed_hooks()
        if names and not self._is_workspace_changed():
            text = f"files may change now, so hooks of this project run in the sandbox until you run `{TRUST}`: {names}"
            context.emit(Notice("info", text))
        self.record_changes()

    def record_changes(self) -> None:
        """Record that the model may change files now, for this session and later ones."""
        _changed_workspaces.add(self._cwd)
        if self._trust:
            self._trust.record_changes(Path(self._cwd), has_hooks=bool(self._names_of_exposed_hooks()))

    def report_earlier_changes(self, context: BackendContext) -> None:
        """Report that hooks run in the sandbox because of an earlier session."""
        names = self._names_of_exposed_hooks()
        if names and self._is_workspace_changed():
            text = f"a model may have changed files that these hooks load, so they run in the sandbox: {names}"
            context.emit(Notice("warning", f"{text}; review the files, then run `{TRUST}`"))

    def _is_workspace_changed(self) -> bool:
        return self._cwd in _changed_workspaces or bool(self._trust and self._trust.may_be_changed(Path(self._cwd)))

    def _names_of_exposed_hooks(self) -> str:
        names = dict.fromkeys(hook.name for hook in self._hooks if self._loads_workspace_files(hook))
        return ", ".join(names)[:MAX_NAMES_LENGTH]

    def _loads_workspace_files(self, hook: HookSpec) -> bool:
        return not hook.folder or bool(self._programs[hook])

    async def on_prompt(self, prompt: Prompt, context: BackendContext) -> str:
        """Return why a prompt is denied, or an empty string. Context that hooks add is sent to the model."""
        reason, added = await self._ask_all("prompt_submitted", "", {"prompt": prompt.text})
        if added and not reason:
            context.emit(Reminded("\n".join(added)[:MAX_CONTEXT_LENGTH]))
        return reason

    async def on_turn_end(self, ended: TurnEnded, context: BackendContext, *, again: bool = False) -> str:
        """Return why the turn must continue, or an empty string. A hook that fails is ignored here."""
        payload = {"reason": ended.reason, "again": again}
        return "\n".join(await self._collect_objections("turn_end", "", payload, context))

    async def _ask_all(self, event: HookEvent, tool: str, payload: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the first objection and the context added before it."""
        added: list[str] = []
        for hook in self._matching(event, tool):
            try:
                result = await self._run(hook, payload)
            except ToolError as error:
                return f"hook {hook.name} could not run: {error}", added
            if failed := failure(hook, result):
                return f"hook {hook.name} failed: {failed}", added
            if reason := objection(result):
                return reason, added
            added += filter(None, [added_context(hook, result.stdout)])
        return "", added

    async def _collect_objections(
        self, event: HookEvent, tool: str, payload: Mapping[str, Any], context: BackendContext
    ) -> list[str]:
        """Return all objections; a hook that fails only causes a notice."""
        objections: list[str] = []
        for hook in self._matching(event, tool):
            try:
                result = await self._run(hook, payload)
            except ToolError as error:
                context.emit(Notice("warning", f"hook {hook.name} could not run: {error}"))
                continue
            if failed := failure(hook, result):
                context.emit(Notice("warning", f"hook {hook.name} failed: {failed}"))
            elif reason := objection(result):
                objections.append(reason)
        return objections

    def _matching(self, event: HookEvent, tool: str) -> list[HookSpec]:
        return [hook for hook in self._hooks if hook.event == event and hook.matches(tool)]

    async def _run(self, hook: HookSpec, payload: Mapping[str, Any]) -> CommandResult:
        import os

        from ostler.processes.command_environment import command_environment
        from ostler.processes.helper_programs import run_program

        for path, sha in self._programs[hook].items():
            if hash_programs(self._folder, hook.command).get(path) != sha:
                raise ToolError(
                    f"its program {path} changed during this session", hint="review it and start a new session"
                )
        stdin = json.dumps(hook_input(hook, payload, self._cwd)).encode()
        env = {**command_environment(os.environ), "CLAUDE_PROJECT_DIR": self._cwd} if hook.style == "claude" else None
        if self._loads_workspace_files(hook) and self._is_workspace_changed():
            return await self._run_in_sandbox(hook, stdin.decode())
        return await run_program(hook.command, cwd=hook.folder or self._cwd, timeout=hook.seconds, stdin=stdin, env=env)

    async def _run_in_sandbox(self, hook: HookSpec, stdin: str) -> CommandResult:
        """Run a hook like a command of the model, because the model may have written what the hook loads."""
        import shlex

        from ostler.workspace.session_workspace import SessionShell

        command = f"printf %s {shlex.quote(stdin)} | {shlex.join(hook.command)}"
        env = {"CLAUDE_PROJECT_DIR": self._cwd} if hook.style == "claude" else {}
        named = tuple(word for word in hook.command if word.startswith("/"))
        async with aclosing(SessionShell(self._cwd, writable=True, sandbox="require")) as shell:
            return await shell.run(CommandRequest(command, timeout=hook.seconds, env=env, readable=named))
