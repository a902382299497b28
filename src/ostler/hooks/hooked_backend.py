"""A backend with the user's hooks for prompts and turn ends."""

import msgspec

from ostler.core.errors import UsageError
from ostler.core.events import Notice, Reminded, Reverted, TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import Backend, BackendContext
from ostler.core.sessions import SessionChange, SessionInfo, SessionStart
from ostler.hooks.hook_runner import HookRunner

MAX_CONTINUATIONS = 3


class HookedBackend:
    """Wraps a backend and runs the hooks for prompts and turn ends."""

    def __init__(self, backend: Backend, hooks: HookRunner) -> None:
        self._backend = backend
        self._hooks = hooks
        self._context: BackendContext
        self._can_continue = False

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        self._context = context
        info = await self._backend.open(start, context)
        self._can_continue = info.can_continue
        self._hooks.report_earlier_changes(context)
        return info

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if prompt and (reason := await self._hooks.on_prompt(prompt, self._context)):
            _revert_prompt(self._context)
            raise UsageError(f"a hook denied the prompt: {reason}", code="hook")
        if not self._can_continue:  # another program's tools are not seen here
            self._hooks.note_changes(self._context)
        try:
            ended = await self._backend.run_turn(prompt)
        except Exception:
            await self._hooks.on_turn_end(TurnEnded("", "failed"), self._context)
            raise
        return await self._continue_while_denied(ended, prompt)

    async def _continue_while_denied(self, ended: TurnEnded, prompt: Prompt | None) -> TurnEnded:
        """Continue a finished turn while a hook objects, up to `MAX_CONTINUATIONS` times."""
        for number in range(MAX_CONTINUATIONS + 1):
            reason = await self._hooks.on_turn_end(ended, self._context, again=number > 0)
            if not reason or ended.reason != "done":
                return ended
            if prompt is None or not self._can_continue:
                self._context.emit(Reminded(f"The user's hook objected to the end of the last turn: {reason}"))
                note = f"a hook objects to the end of this turn: {reason}; the agent gets this with the next prompt"
                self._context.emit(Notice("warning", note))
                return ended
            if number < MAX_CONTINUATIONS:
                self._context.emit(Reminded(f"The user's hook requires more work in this turn: {reason}"))
                ended = await self._backend.run_turn(_continuation_prompt(prompt))
        self._context.emit(Notice("warning", f"a hook still objects after {MAX_CONTINUATIONS} more attempts: {reason}"))
        return ended

    async def apply(self, change: SessionChange) -> bool:
        return await self._backend.apply(change)

    async def aclose(self) -> None:
        await self._backend.aclose()


def _continuation_prompt(prompt: Prompt) -> Prompt:
    """Return the prompt without its task, which must not be started again."""
    target = msgspec.structs.replace(prompt.target, task="") if prompt.target and not prompt.target.task else None
    return msgspec.structs.replace(prompt, target=target)


def _revert_prompt(context: BackendContext) -> None:
    """Revert the turn's start, so that the denied prompt is not sent with a later one."""
    records = context.records()
    indexes = reversed(range(len(records)))
    start = next(index for index in indexes if records.type_at(index) == "turn_started")
    context.emit(Reverted(records[start].seq - 1))
