"""Runs a person's own programs around tools and turns; one that should have a say and fails, refuses."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostler.core.errors import ToolError, UsageError
from ostler.core.events import Notice, Reminded, Reverted, TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import Backend, BackendContext, CommandResult
from ostler.core.sessions import SessionChange, SessionInfo, SessionStart
from ostler.core.tools import ToolCall, ToolResult
from ostler.knowledge.hooks import HookEvent, HookSpec, hook_input
from ostler.knowledge.source_folder import SourceFolder
from ostler.knowledge.trust_items import hash_programs

EXIT_DENY = 2
DECISIONS = ("allow", "deny", "approve", "block")
MAX_REASON_LENGTH = 500
MAX_CONTEXT_LENGTH = 10_000
MAX_CONTINUATIONS = 3


class HookRunner:
    """The hooks of one session, run in its workspace with what happens as JSON on their standard input."""

    def __init__(self, hooks: Sequence[HookSpec], folder: SourceFolder) -> None:
        """What a hook runs of the workspace is remembered as it is now: a model may change it, and must not thereby
        have it run."""
        self._hooks = hooks
        self._folder = folder
        self._cwd = folder.root
        self._programs = {hook: hash_programs(folder, hook.command) for hook in hooks}

    async def before(self, call: ToolCall, context: BackendContext) -> str:
        """Why a call is refused; nothing when no hook objects. A hook that cannot say so counts as an objection."""
        told = {"tool": call.tool, "arguments": msgspec.to_builtins(call.arguments)}
        why, _ = await self._ask_all("before_tool", call.tool, told)
        if why:
            context.emit(Notice("warning", f"{call.tool} was refused: {why}"))
        return why

    async def after(self, call: ToolCall, result: ToolResult, context: BackendContext) -> None:
        """What a hook objects to is told to the model; the call itself is done."""
        told = {"tool": call.tool, "arguments": msgspec.to_builtins(call.arguments)}
        told |= {"result": {"status": result.status, "text": result.for_model}}
        for why in await self._collect_objections("after_tool", call.tool, told, context):
            context.emit(Reminded(f"A hook of the user says about this call of {call.tool}: {why}"))

    async def on_prompt(self, prompt: Prompt, context: BackendContext) -> str:
        """Why a prompt is refused; what hooks have to add to it is told to the model."""
        why, added = await self._ask_all("prompt_submitted", "", {"prompt": prompt.text})
        if added and not why:
            context.emit(Reminded("\n".join(added)[:MAX_CONTEXT_LENGTH]))
        return why

    async def on_turn_end(self, ended: TurnEnded, context: BackendContext, *, again: bool = False) -> str:
        """Why the turn should go on; nothing when every hook lets it end, or only failed."""
        told = {"reason": ended.reason, "again": again}
        return "\n".join(await self._collect_objections("turn_end", "", told, context))

    async def _ask_all(self, event: HookEvent, tool: str, payload: Mapping[str, Any]) -> tuple[str, list[str]]:
        """The first objection, and what was said beside."""
        added: list[str] = []
        for hook in self._matching(event, tool):
            try:
                ran = await self._run(hook, payload)
            except ToolError as failure:
                return f"the hook {hook.name} could not run: {failure}", added
            if failed := _failure(hook, ran):
                return f"the hook {hook.name} failed: {failed}", added
            if why := _objection(ran):
                return why, added
            added += filter(None, [_added_context(hook, ran.stdout)])
        return "", added

    async def _collect_objections(
        self, event: HookEvent, tool: str, payload: Mapping[str, Any], context: BackendContext
    ) -> list[str]:
        """All objections; a hook that fails is shown, and has none."""
        found: list[str] = []
        for hook in self._matching(event, tool):
            try:
                ran = await self._run(hook, payload)
            except ToolError as failure:
                context.emit(Notice("warning", f"the hook {hook.name} could not run: {failure}"))
                continue
            if failed := _failure(hook, ran):
                context.emit(Notice("warning", f"the hook {hook.name} failed: {failed}"))
            elif why := _objection(ran):
                found.append(why)
        return found

    def _matching(self, event: HookEvent, tool: str) -> list[HookSpec]:
        return [hook for hook in self._hooks if hook.event == event and hook.matches(tool)]

    async def _run(self, hook: HookSpec, payload: Mapping[str, Any]) -> CommandResult:
        import os

        from ostler.processes.command_environment import command_environment
        from ostler.processes.helper_programs import run_program

        for path, sha in self._programs[hook].items():
            if hash_programs(self._folder, hook.command).get(path) != sha:
                raise ToolError(
                    f"its program {path} changed while this session runs", hint="look at it, then begin anew"
                )
        stdin = json.dumps(hook_input(hook, payload, self._cwd)).encode()
        env = {**command_environment(os.environ), "CLAUDE_PROJECT_DIR": self._cwd} if hook.style == "claude" else None
        return await run_program(hook.command, cwd=self._cwd, timeout=hook.seconds, stdin=stdin, env=env)


class HookedBackend:
    """A backend whose turns begin and end with the hooks for those moments."""

    def __init__(self, backend: Backend, hooks: HookRunner) -> None:
        self._backend = backend
        self._hooks = hooks
        self._context: BackendContext
        self._can_continue = False

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        self._context = context
        info = await self._backend.open(start, context)
        self._can_continue = info.backend == "engine"
        return info

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if prompt and (why := await self._hooks.on_prompt(prompt, self._context)):
            _revert_prompt(self._context)
            raise UsageError(f"the prompt was refused: {why}", code="hook")
        try:
            ended = await self._backend.run_turn(prompt)
        except Exception:
            await self._hooks.on_turn_end(TurnEnded("", "failed"), self._context)
            raise
        return await self._continue_while_denied(ended, prompt)

    async def _continue_while_denied(self, ended: TurnEnded, prompt: Prompt | None) -> TurnEnded:
        """A turn that is done goes on while a hook objects, a few times."""
        for number in range(MAX_CONTINUATIONS + 1):
            why = await self._hooks.on_turn_end(ended, self._context, again=number > 0)
            if not why or ended.reason != "done" or prompt is None or not self._can_continue:
                return ended
            if number < MAX_CONTINUATIONS:
                self._context.emit(Reminded(f"A hook of the user does not let this turn end yet: {why}"))
                ended = await self._backend.run_turn(_continuation_prompt(prompt))
        self._context.emit(Notice("warning", f"a hook still objects after {MAX_CONTINUATIONS} more tries: {why}"))
        return ended

    async def apply(self, change: SessionChange) -> bool:
        return await self._backend.apply(change)

    async def aclose(self) -> None:
        await self._backend.aclose()


def _continuation_prompt(prompt: Prompt) -> Prompt:
    """The same prompt for more of its turn: what was handed out is not handed out again."""
    cast = msgspec.structs.replace(prompt.target, task="") if prompt.target and not prompt.target.task else None
    return msgspec.structs.replace(prompt, target=cast)


def _revert_prompt(context: BackendContext) -> None:
    """A refused prompt is never sent, not with a later one either."""
    records = context.records()
    begun = next(at for at in reversed(range(len(records))) if records.type_at(at) == "turn_started")
    context.emit(Reverted(records[begun].seq - 1))


def _failure(hook: HookSpec, result: CommandResult) -> str:
    """Why a hook's answer is none: it cannot be taken for a yes."""
    if result.exit_code == EXIT_DENY:
        return ""
    if result.exit_code != 0:
        return "it took too long" if result.timed_out else " ".join(_reason(result).split())
    answer = _parse_answer(result.stdout)
    if answer is None and hook.style == "ostler":
        return "what it printed is no JSON object"
    decision = (answer or {}).get("decision")
    known = decision is None or (isinstance(decision, str) and decision in DECISIONS)
    return "" if known else f"its decision {str(decision)[:40]!r} is none of {', '.join(DECISIONS)}"


def _objection(result: CommandResult) -> str:
    if result.exit_code == EXIT_DENY:
        return _reason(result)
    answer = _parse_answer(result.stdout) or {}
    if answer.get("decision") in ("deny", "block"):
        return str(answer.get("reason") or "a hook denies it")[:MAX_REASON_LENGTH]
    more = answer.get("hookSpecificOutput")
    if isinstance(more, dict) and more.get("permissionDecision") in ("deny", "ask"):
        return str(more.get("permissionDecisionReason") or "a hook denies it")[:MAX_REASON_LENGTH]
    if answer.get("continue") is False:
        return str(answer.get("stopReason") or "a hook stops it")[:MAX_REASON_LENGTH]
    return ""


def _added_context(hook: HookSpec, stdout: str) -> str:
    """What a hook adds to a prompt."""
    answer = _parse_answer(stdout) or {}
    more = answer.get("hookSpecificOutput")
    added = more.get("additionalContext") if isinstance(more, dict) else answer.get("context")
    if isinstance(added, str):
        return added
    return stdout.strip() if hook.style == "claude" and not answer else ""


def _parse_answer(stdout: str) -> dict[str, Any] | None:
    """What a hook answers: nothing where it printed other words, None where it began an object and broke it.

    A shell's greeting or a program's warning before the object does not take its word away.
    """
    said = stdout.lstrip("\ufeff \t\r\n")
    begun = said.startswith("{")
    try:
        answer = json.loads(said if begun else said[said.find("\n{") :])
    except (ValueError, RecursionError):
        answer = None if begun else {}
    return answer if begun or isinstance(answer, dict) else {}


def _reason(result: CommandResult) -> str:
    return (result.stderr or result.stdout).strip()[:MAX_REASON_LENGTH] or f"exit {result.exit_code}"
