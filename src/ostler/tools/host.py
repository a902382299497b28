"""The one door: whoever asks, a call is understood, decided, run and bounded here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import msgspec

from ostler.core.display import Display, DisplayDiff, DisplayText
from ostler.core.errors import ToolError
from ostler.core.events import Event, ToolCalled, ToolProgress, ToolStarted
from ostler.core.permission import Decision, Permission, Question, QuestionReply
from ostler.core.protocols import BackendContext, Tool, Workspace
from ostler.core.tools import ChildTask, ToolCall, ToolResult, ToolSpec
from ostler.text.secret_masker import MASK_MARKER
from ostler.tools.call_resolution import ResolvedCall, resolve_call
from ostler.tools.output_limit import limit_output
from ostler.tools.partial_call import HUNKS_ARGUMENT, restrict_to_hunks


class CallInterceptor(Protocol):
    """What happens before and after every call that is understood."""

    async def before(self, call: ToolCall, context: BackendContext) -> str:
        """Why the call is refused, or nothing."""

    async def after(self, call: ToolCall, result: ToolResult, context: BackendContext) -> None: ...


class LocalToolHost:
    """Runs calls on this machine, each through the same four steps. `unlisted` tools run too, but none is told of."""

    def __init__(
        self,
        tools: Iterable[Tool[Any]],
        workspace: Workspace,
        hidden_tools: Callable[[], Iterable[Tool[Any]]] = tuple,
        is_offered: Callable[[str], bool] = lambda tool: True,
        interceptor: CallInterceptor | None = None,
        dynamic_tools: Callable[[], Mapping[str, Tool[Any]]] = dict,
    ) -> None:
        """`unlisted` is looked at with the first call, for a session begins sooner without them.

        `offers` says which tools the model that works now has; those it has not are neither told of nor run.

        `more` are tools by name that come and go, as those of a server do; none takes the place of one that stays.
        """
        self._tools = {tool.spec.name: tool for tool in tools}
        self._make_hidden_tools = hidden_tools
        self._dynamic_tools = dynamic_tools
        self._workspace = workspace
        self._is_offered = is_offered
        self._interceptor = interceptor

    @cached_property
    def _hidden_tools(self) -> dict[str, Tool[Any]]:
        return {tool.spec.name: tool for tool in self._make_hidden_tools()}

    async def open(self, context: BackendContext) -> None:
        """The tools that stay need nothing."""

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for name, tool in self._visible_tools().items() if self._is_offered(name)]

    def _visible_tools(self) -> dict[str, Tool[Any]]:
        came = {
            name: tool for name, tool in self._dynamic_tools().items() if name not in self._tools | self._hidden_tools
        }
        return self._tools | came

    async def run(self, call: ToolCall, context: BackendContext) -> ToolResult:
        try:
            understood = await self.resolve(call)
            self._check_offered(understood)
            _check_no_masked_secret(understood)
            if understood.call != call:
                context.emit(_resolved_call_event(understood, call))
            permission = await understood.tool.permission(understood.params, self._workspace)
        except ToolError as failure:
            return failed_result(call.id, failure)
        if self._interceptor and (why := await self._interceptor.before(understood.call, context)):
            return _hook_denied_result(call.id, why)
        permission = _permission_for_call(permission, call, understood.tool)
        decision = await context.decide(permission)
        if decision.answer != "allow":
            return denied_result(call.id, decision)
        if decision.hunks is not None:
            return await self._run_selected_hunks(understood, call, permission, decision.hunks, context)
        return await self._run(understood, call, context)

    async def _run_selected_hunks(
        self,
        resolved: ResolvedCall,
        call: ToolCall,
        requested: Permission,
        hunks: tuple[int, ...],
        context: BackendContext,
    ) -> ToolResult:
        """Only the hunks that were taken of what was asked, which is looked at anew before."""
        from ostler.tools.editing.selected_hunks import with_selection_note  # only who chooses pays for it

        try:
            resolved = await restrict_to_hunks(resolved, requested, hunks, self._workspace)
        except ToolError as failure:
            return failed_result(call.id, failure)
        if self._interceptor and (why := await self._interceptor.before(resolved.call, context)):
            return _hook_denied_result(call.id, why)
        context.emit(_resolved_call_event(resolved, call))
        return await self._run(
            resolved, call, context, lambda result: with_selection_note(result, requested.preview, hunks)
        )

    async def _run(
        self,
        resolved: ResolvedCall,
        call: ToolCall,
        context: BackendContext,
        transform: Callable[[ToolResult], ToolResult] = lambda result: result,
    ) -> ToolResult:
        spec = resolved.tool.spec
        started = ToolStarted(call.id, spec.name, spec.effects)
        await context.record_start(started, files_only=await self._changes_files_only(spec))
        result = await self._call_tool(resolved, call, context)
        result = limit_output(
            _with_repair_notes(transform(result) if result.status == "ok" else result, resolved.notes)
        )
        if self._interceptor:
            await self._interceptor.after(resolved.call, result, context)
        return result

    async def _changes_files_only(self, spec: ToolSpec) -> bool:
        """Return whether a call changes files only through the workspace; a hook is a program that may change more."""
        if not spec.effects or self._interceptor is not None:
            return False
        return spec.reach == "files" or (spec.reach == "commands" and not await self._workspace.can_commands_write())

    def _check_offered(self, resolved: ResolvedCall) -> None:
        name = resolved.tool.spec.name
        if resolved.call.origin == "model" and not self._is_offered(name):
            raise ToolError(f"this agent does not have the tool {name}", code="no_such_tool", hint="use another way")

    async def _call_tool(self, resolved: ResolvedCall, call: ToolCall, context: BackendContext) -> ToolResult:
        try:
            result = await resolved.tool.run(resolved.params, _LocalToolContext(call, self._workspace, context))
        except ToolError as failure:
            return failed_result(call.id, failure)
        if resolved.call.tool != call.tool:
            from ostler.tools.alias_results import format_result  # only who calls by another name needs it

            result = format_result(result, call)
        return msgspec.structs.replace(result, call_id=call.id)

    async def resolve(self, call: ToolCall) -> ResolvedCall:
        """What a call means."""
        return await resolve_call(call, self._hidden_tools | self._visible_tools(), self._workspace)

    async def permission(self, call: ToolCall) -> Permission:
        """What a call would need, and nothing is decided or run."""
        understood = await self.resolve(call)
        return await understood.tool.permission(understood.params, self._workspace)

    async def aclose(self) -> None:
        close = getattr(self._workspace, "aclose", None)
        if close is not None:
            await close()


def _check_no_masked_secret(resolved: ResolvedCall) -> None:
    """A model that was not shown a secret must not write the mark over it."""
    call, spec = resolved.call, resolved.tool.spec
    if call.origin == "model" and spec.kind == "edit" and MASK_MARKER in str(call.arguments):
        raise ToolError(
            f"{MASK_MARKER} stands for a secret that you are not shown, and would take its place in the file",
            code="withheld",
            hint="change only the lines around it",
        )


class _LocalToolContext:
    """What a running tool sees."""

    def __init__(self, call: ToolCall, workspace: Workspace, context: BackendContext) -> None:
        self.call_id = call.id
        self._tool_name = call.tool
        self.workspace = workspace
        self._context = context

    def progress(self, display: Display) -> None:
        self._context.emit(ToolProgress(self.call_id, display))

    def persist(self, event: Event) -> None:
        self._context.emit(event)

    def events(self) -> Sequence[Event]:
        return self._context.events()

    async def ask(self, question: Question) -> QuestionReply:
        return await self._context.ask(msgspec.structs.replace(question, asked_by=question.asked_by or self._tool_name))

    async def spawn(self, task: ChildTask) -> ToolResult:
        return await self._context.spawn(task)


def failed_result(call_id: str, error: ToolError) -> ToolResult:
    """A failure as a value, for the model to react to."""
    return ToolResult(call_id, "failed", f"Error: {error}", Display(str(error)), fault=error.fault)


def denied_result(call_id: str, decision: Decision) -> ToolResult:
    """A refusal as a value; a person may have said why, and an ask that was withdrawn is no refusal."""
    if decision.answer == "cancel":
        return ToolResult(call_id, "cancelled", "Cancelled before it ran; nothing was done.", Display("cancelled"))
    who = {"person": "The user refused this.", "nobody": "Refused: nobody is here to allow it."}
    text = who.get(decision.by, "Refused by the permission rules.")
    said = decision.feedback or decision.reason
    return ToolResult(call_id, "denied", f"{text} {said}".strip(), Display(said or text))


def _hook_denied_result(call_id: str, reason: str) -> ToolResult:
    """A hook's refusal as a value: no rule would change it."""
    return ToolResult(call_id, "denied", f"A hook of the user refused this. {reason}", Display(reason))


def _resolved_call_event(resolved: ResolvedCall, call: ToolCall) -> ToolCalled:
    """The call anew, as it was understood; its title is the name it came by, if that is another."""
    title = call.tool if resolved.call.tool != call.tool else ""
    return ToolCalled(resolved.call, title, resolved.tool.spec.kind)


def _with_repair_notes(result: ToolResult, notes: Sequence[str]) -> ToolResult:
    """The result, and with it what of the call had to be mended."""
    if not notes:
        return result
    told = f"the call was mended: {', '.join(notes)}"
    shown = Display(result.for_human.summary, (*result.for_human.blocks, DisplayText(told)))
    return msgspec.structs.replace(result, for_model=f"{result.for_model}\n[{told}]", for_human=shown)


def _permission_for_call(permission: Permission, call: ToolCall, tool: Tool[Any]) -> Permission:
    diffs = [part for part in permission.preview.blocks if isinstance(part, DisplayDiff)]
    by_hunk = (
        HUNKS_ARGUMENT in getattr(tool, "unlisted", ()) and bool(diffs) and not any(part.truncated for part in diffs)
    )
    return msgspec.structs.replace(permission, call_id=call.id, by_hunk=by_hunk)
