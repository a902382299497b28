"""Runs a person's own programs around tools and turns; one that should have a say and fails, refuses."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostler.knowledge.effective_parts import programs
from ostler.knowledge.folder import Folder
from ostler.knowledge.hooks import Hook, Moment, told_to
from ostler.vocabulary.errors import ToolFailure, UsageError
from ostler.vocabulary.events import Notice, Reminded, Reverted, TurnEnded
from ostler.vocabulary.prompt import Prompt
from ostler.vocabulary.seams import Backend, Ran, Stage
from ostler.vocabulary.sessions import Change, SessionInfo, SessionStart
from ostler.vocabulary.tools import ToolCall, ToolResult

REFUSES = 2
DECISIONS = ("allow", "deny", "approve", "block")
MOST_TOLD = 500
MOST_CONTEXT = 10_000
MOST_ROUNDS = 3


class Hooks:
    """The hooks of one session, run in its workspace with what happens as JSON on their standard input."""

    def __init__(self, hooks: Sequence[Hook], work: Folder) -> None:
        """What a hook runs of the workspace is remembered as it is now: a model may change it, and must not thereby
        have it run."""
        self._hooks = hooks
        self._work = work
        self._cwd = work.root
        self._programs = {hook: programs(work, hook.command) for hook in hooks}

    async def before(self, call: ToolCall, stage: Stage) -> str:
        """Why a call is refused; nothing when no hook objects. A hook that cannot say so counts as an objection."""
        told = {"tool": call.tool, "arguments": msgspec.to_builtins(call.arguments)}
        why, _ = await self._asked("before_tool", call.tool, told)
        if why:
            stage.emit(Notice("warning", f"{call.tool} was refused: {why}"))
        return why

    async def after(self, call: ToolCall, result: ToolResult, stage: Stage) -> None:
        """What a hook objects to is told to the model; the call itself is done."""
        told = {"tool": call.tool, "arguments": msgspec.to_builtins(call.arguments)}
        told |= {"result": {"status": result.status, "text": result.for_model}}
        for why in await self._heard("after_tool", call.tool, told, stage):
            stage.emit(Reminded(f"A hook of the user says about this call of {call.tool}: {why}"))

    async def submitted(self, prompt: Prompt, stage: Stage) -> str:
        """Why a prompt is refused; what hooks have to add to it is told to the model."""
        why, added = await self._asked("prompt_submitted", "", {"prompt": prompt.text})
        if added and not why:
            stage.emit(Reminded("\n".join(added)[:MOST_CONTEXT]))
        return why

    async def ended(self, ended: TurnEnded, stage: Stage, *, again: bool = False) -> str:
        """Why the turn should go on; nothing when every hook lets it end, or only failed."""
        told = {"reason": ended.reason, "again": again}
        return "\n".join(await self._heard("turn_end", "", told, stage))

    async def _asked(self, moment: Moment, tool: str, told: Mapping[str, Any]) -> tuple[str, list[str]]:
        """The first objection, and what was said beside."""
        added: list[str] = []
        for hook in self._of(moment, tool):
            try:
                ran = await self._run(hook, told)
            except ToolFailure as failure:
                return f"the hook {hook.name} could not run: {failure}", added
            if failed := _failure(hook, ran):
                return f"the hook {hook.name} failed: {failed}", added
            if why := _objection(ran):
                return why, added
            added += filter(None, [_context(hook, ran.stdout)])
        return "", added

    async def _heard(self, moment: Moment, tool: str, told: Mapping[str, Any], stage: Stage) -> list[str]:
        """All objections; a hook that fails is shown, and has none."""
        found: list[str] = []
        for hook in self._of(moment, tool):
            try:
                ran = await self._run(hook, told)
            except ToolFailure as failure:
                stage.emit(Notice("warning", f"the hook {hook.name} could not run: {failure}"))
                continue
            if failed := _failure(hook, ran):
                stage.emit(Notice("warning", f"the hook {hook.name} failed: {failed}"))
            elif why := _objection(ran):
                found.append(why)
        return found

    def _of(self, moment: Moment, tool: str) -> list[Hook]:
        return [hook for hook in self._hooks if hook.moment == moment and hook.fits(tool)]

    async def _run(self, hook: Hook, told: Mapping[str, Any]) -> Ran:
        import os

        from ostler.processes.environment import for_commands
        from ostler.processes.programs import run_program

        for path, sha in self._programs[hook].items():
            if programs(self._work, hook.command).get(path) != sha:
                raise ToolFailure(
                    f"its program {path} changed while this session runs", hint="look at it, then begin anew"
                )
        stdin = json.dumps(told_to(hook, told, self._cwd)).encode()
        env = {**for_commands(os.environ), "CLAUDE_PROJECT_DIR": self._cwd} if hook.style == "claude" else None
        return await run_program(hook.command, cwd=self._cwd, timeout=hook.seconds, stdin=stdin, env=env)


class HookedBackend:
    """A backend whose turns begin and end with the hooks for those moments."""

    def __init__(self, backend: Backend, hooks: Hooks) -> None:
        self._backend = backend
        self._hooks = hooks
        self._stage: Stage
        self._goes_on = False

    async def open(self, start: SessionStart, stage: Stage) -> SessionInfo:
        self._stage = stage
        info = await self._backend.open(start, stage)
        self._goes_on = info.backend == "engine"
        return info

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if prompt and (why := await self._hooks.submitted(prompt, self._stage)):
            _forget(self._stage)
            raise UsageError(f"the prompt was refused: {why}", code="hook")
        try:
            ended = await self._backend.run_turn(prompt)
        except Exception:
            await self._hooks.ended(TurnEnded("", "failed"), self._stage)
            raise
        return await self._to_the_end(ended, prompt)

    async def _to_the_end(self, ended: TurnEnded, prompt: Prompt | None) -> TurnEnded:
        """A turn that is done goes on while a hook objects, a few times."""
        for number in range(MOST_ROUNDS + 1):
            why = await self._hooks.ended(ended, self._stage, again=number > 0)
            if not why or ended.reason != "done" or prompt is None or not self._goes_on:
                return ended
            if number < MOST_ROUNDS:
                self._stage.emit(Reminded(f"A hook of the user does not let this turn end yet: {why}"))
                ended = await self._backend.run_turn(_going_on(prompt))
        self._stage.emit(Notice("warning", f"a hook still objects after {MOST_ROUNDS} more tries: {why}"))
        return ended

    async def apply(self, change: Change) -> bool:
        return await self._backend.apply(change)

    async def aclose(self) -> None:
        await self._backend.aclose()


def _going_on(prompt: Prompt) -> Prompt:
    """The same prompt for more of its turn: what was handed out is not handed out again."""
    cast = msgspec.structs.replace(prompt.cast, task="") if prompt.cast and not prompt.cast.task else None
    return msgspec.structs.replace(prompt, cast=cast)


def _forget(stage: Stage) -> None:
    """A refused prompt is never sent, not with a later one either."""
    records = stage.records()
    begun = next(at for at in reversed(range(len(records))) if records.kind(at) == "turn_started")
    stage.emit(Reverted(records[begun].seq - 1))


def _failure(hook: Hook, ran: Ran) -> str:
    """Why a hook's answer is none: it cannot be taken for a yes."""
    if ran.exit_code == REFUSES:
        return ""
    if ran.exit_code != 0:
        return "it took too long" if ran.timed_out else " ".join(_why(ran).split())
    answer = _answer(ran.stdout)
    if answer is None and hook.style == "ostler":
        return "what it printed is no JSON object"
    decision = (answer or {}).get("decision")
    known = decision is None or (isinstance(decision, str) and decision in DECISIONS)
    return "" if known else f"its decision {str(decision)[:40]!r} is none of {', '.join(DECISIONS)}"


def _objection(ran: Ran) -> str:
    if ran.exit_code == REFUSES:
        return _why(ran)
    answer = _answer(ran.stdout) or {}
    if answer.get("decision") in ("deny", "block"):
        return str(answer.get("reason") or "a hook denies it")[:MOST_TOLD]
    more = answer.get("hookSpecificOutput")
    if isinstance(more, dict) and more.get("permissionDecision") in ("deny", "ask"):
        return str(more.get("permissionDecisionReason") or "a hook denies it")[:MOST_TOLD]
    if answer.get("continue") is False:
        return str(answer.get("stopReason") or "a hook stops it")[:MOST_TOLD]
    return ""


def _context(hook: Hook, stdout: str) -> str:
    """What a hook adds to a prompt."""
    answer = _answer(stdout) or {}
    more = answer.get("hookSpecificOutput")
    added = more.get("additionalContext") if isinstance(more, dict) else answer.get("context")
    if isinstance(added, str):
        return added
    return stdout.strip() if hook.style == "claude" and not answer else ""


def _answer(stdout: str) -> dict[str, Any] | None:
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


def _why(ran: Ran) -> str:
    return (ran.stderr or ran.stdout).strip()[:MOST_TOLD] or f"exit {ran.exit_code}"
