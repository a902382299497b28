"""The one door: whoever asks, a call is understood, decided, run and bounded here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import msgspec

from ostler.text.withheld import MARK
from ostler.tools.bounds import bound
from ostler.tools.part import HUNKS, part
from ostler.tools.understand import Understood, understand
from ostler.vocabulary.display import DiffShown, Display, Note
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.events import Event, ToolCalled, ToolProgress, ToolStarted
from ostler.vocabulary.permission import Decision, Permission, Question, Reply
from ostler.vocabulary.seams import Ground, Stage, Tool
from ostler.vocabulary.tools import ChildTask, ToolCall, ToolResult, ToolSpec


class Around(Protocol):
    """What happens before and after every call that is understood."""

    async def before(self, call: ToolCall, stage: Stage) -> str:
        """Why the call is refused, or nothing."""

    async def after(self, call: ToolCall, result: ToolResult, stage: Stage) -> None: ...


class LocalToolHost:
    """Runs calls on this machine, each through the same four steps. `unlisted` tools run too, but none is told of."""

    def __init__(
        self,
        tools: Iterable[Tool[Any]],
        ground: Ground,
        unlisted: Callable[[], Iterable[Tool[Any]]] = tuple,
        offers: Callable[[str], bool] = lambda tool: True,
        around: Around | None = None,
        more: Callable[[], Mapping[str, Tool[Any]]] = dict,
    ) -> None:
        """`unlisted` is looked at with the first call, for a session begins sooner without them.

        `offers` says which tools the model that works now has; those it has not are neither told of nor run.

        `more` are tools by name that come and go, as those of a server do; none takes the place of one that stays.
        """
        self._own = {tool.spec.name: tool for tool in tools}
        self._make_unlisted = unlisted
        self._more = more
        self._ground = ground
        self._offers = offers
        self._around = around

    @cached_property
    def _unlisted(self) -> dict[str, Tool[Any]]:
        return {tool.spec.name: tool for tool in self._make_unlisted()}

    async def open(self, stage: Stage) -> None:
        """The tools that stay need nothing."""

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for name, tool in self._listed().items() if self._offers(name)]

    def _listed(self) -> dict[str, Tool[Any]]:
        came = {name: tool for name, tool in self._more().items() if name not in self._own | self._unlisted}
        return self._own | came

    async def run(self, call: ToolCall, stage: Stage) -> ToolResult:
        try:
            understood = await self.understood(call)
            self._have(understood)
            _keeps_secrets(understood)
            if understood.call != call:
                stage.emit(_called(understood, call))
            permission = await understood.tool.permission(understood.params, self._ground)
        except ToolFailure as failure:
            return failed(call.id, failure)
        if self._around and (why := await self._around.before(understood.call, stage)):
            return _objected(call.id, why)
        permission = _for_call(permission, call, understood.tool)
        decision = await stage.decide(permission)
        if decision.answer != "allow":
            return refused(call.id, decision)
        if decision.hunks is not None:
            return await self._run_part(understood, call, permission, decision.hunks, stage)
        return await self._run(understood, call, stage)

    async def _run_part(
        self, understood: Understood, call: ToolCall, asked: Permission, taken: tuple[int, ...], stage: Stage
    ) -> ToolResult:
        """Only the hunks that were taken of what was asked, which is looked at anew before."""
        from ostler.tools.editing.chosen import told  # only who chooses pays for it

        try:
            understood = await part(understood, asked, taken, self._ground)
        except ToolFailure as failure:
            return failed(call.id, failure)
        if self._around and (why := await self._around.before(understood.call, stage)):
            return _objected(call.id, why)
        stage.emit(_called(understood, call))
        return await self._run(understood, call, stage, lambda result: told(result, asked.preview, taken))

    async def _run(
        self,
        understood: Understood,
        call: ToolCall,
        stage: Stage,
        add: Callable[[ToolResult], ToolResult] = lambda result: result,
    ) -> ToolResult:
        spec = understood.tool.spec
        await stage.intend(ToolStarted(call.id, spec.name, spec.effects))
        result = await self._result(understood, call, stage)
        result = bound(_noted(add(result) if result.status == "ok" else result, understood.notes))
        if self._around:
            await self._around.after(understood.call, result, stage)
        return result

    def _have(self, understood: Understood) -> None:
        name = understood.tool.spec.name
        if understood.call.origin == "model" and not self._offers(name):
            raise ToolFailure(f"this agent does not have the tool {name}", code="no_such_tool", hint="use another way")

    async def _result(self, understood: Understood, call: ToolCall, stage: Stage) -> ToolResult:
        try:
            result = await understood.tool.run(understood.params, _Context(call, self._ground, stage))
        except ToolFailure as failure:
            return failed(call.id, failure)
        if understood.call.tool != call.tool:
            from ostler.tools.alias_answers import answered  # only who calls by another name needs it

            result = answered(result, call)
        return msgspec.structs.replace(result, call_id=call.id)

    async def understood(self, call: ToolCall) -> Understood:
        """What a call means."""
        return await understand(call, self._unlisted | self._listed(), self._ground)

    async def permission(self, call: ToolCall) -> Permission:
        """What a call would need, and nothing is decided or run."""
        understood = await self.understood(call)
        return await understood.tool.permission(understood.params, self._ground)

    async def aclose(self) -> None:
        close = getattr(self._ground, "aclose", None)
        if close is not None:
            await close()


def _keeps_secrets(understood: Understood) -> None:
    """A model that was not shown a secret must not write the mark over it."""
    call, spec = understood.call, understood.tool.spec
    if call.origin == "model" and spec.kind == "edit" and MARK in str(call.arguments):
        raise ToolFailure(
            f"{MARK} stands for a secret that you are not shown, and would take its place in the file",
            code="withheld",
            hint="change only the lines around it",
        )


class _Context:
    """What a running tool sees."""

    def __init__(self, call: ToolCall, ground: Ground, stage: Stage) -> None:
        self.call_id = call.id
        self._tool = call.tool
        self.ground = ground
        self._stage = stage

    def progress(self, display: Display) -> None:
        self._stage.emit(ToolProgress(self.call_id, display))

    def keep(self, event: Event) -> None:
        self._stage.emit(event)

    def past(self) -> Sequence[Event]:
        return self._stage.past()

    async def ask(self, question: Question) -> Reply:
        return await self._stage.ask(msgspec.structs.replace(question, by=question.by or self._tool))

    async def spawn(self, task: ChildTask) -> ToolResult:
        return await self._stage.spawn(task)


def failed(call_id: str, failure: ToolFailure) -> ToolResult:
    """A failure as a value, for the model to react to."""
    return ToolResult(call_id, "failed", f"Error: {failure}", Display(str(failure)), fault=failure.fault)


def refused(call_id: str, decision: Decision) -> ToolResult:
    """A refusal as a value; a person may have said why, and an ask that was withdrawn is no refusal."""
    if decision.answer == "cancel":
        return ToolResult(call_id, "cancelled", "Cancelled before it ran; nothing was done.", Display("cancelled"))
    who = {"person": "The user refused this.", "nobody": "Refused: nobody is here to allow it."}
    text = who.get(decision.by, "Refused by the permission rules.")
    said = decision.feedback or decision.reason
    return ToolResult(call_id, "denied", f"{text} {said}".strip(), Display(said or text))


def _objected(call_id: str, why: str) -> ToolResult:
    """A hook's refusal as a value: no rule would change it."""
    return ToolResult(call_id, "denied", f"A hook of the user refused this. {why}", Display(why))


def _called(understood: Understood, call: ToolCall) -> ToolCalled:
    """The call anew, as it was understood; its title is the name it came by, if that is another."""
    title = call.tool if understood.call.tool != call.tool else ""
    return ToolCalled(understood.call, title, understood.tool.spec.kind)


def _noted(result: ToolResult, notes: Sequence[str]) -> ToolResult:
    """The result, and with it what of the call had to be mended."""
    if not notes:
        return result
    told = f"the call was mended: {', '.join(notes)}"
    shown = Display(result.for_human.summary, (*result.for_human.blocks, Note(told)))
    return msgspec.structs.replace(result, for_model=f"{result.for_model}\n[{told}]", for_human=shown)


def _for_call(permission: Permission, call: ToolCall, tool: Tool[Any]) -> Permission:
    diffs = [part for part in permission.preview.blocks if isinstance(part, DiffShown)]
    by_hunk = HUNKS in getattr(tool, "unlisted", ()) and bool(diffs) and not any(part.cut for part in diffs)
    return msgspec.structs.replace(permission, call_id=call.id, by_hunk=by_hunk)
