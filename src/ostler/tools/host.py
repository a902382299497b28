"""Tool host: resolves a call, asks the policy, runs the tool and limits the result."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Any, Protocol

import msgspec

from ostler.core.display import Display, DisplayDiff, DisplayFields, DisplayText
from ostler.core.errors import WRITE_DENIED, Fault, ToolError
from ostler.core.events import ToolCalled, ToolsChanged, ToolStarted
from ostler.core.permission import Decision, Permission
from ostler.core.protocols import BackendContext, Tool, ToolSource, Workspace
from ostler.core.tools import ToolCall, ToolPlace, ToolResult, ToolSpec
from ostler.text.secret_masker import MASK_MARKER
from ostler.tools.call_resolution import ResolvedCall, resolve_call
from ostler.tools.output_limit import limit_output
from ostler.tools.partial_call import HUNKS_ARGUMENT, restrict_to_hunks
from ostler.workspace.path_access import resolving_once


class CallInterceptor(Protocol):
    """Runs before and after every resolved call (hooks)."""

    async def before(self, call: ToolCall, context: BackendContext) -> str:
        """Return why the call is denied, or an empty string."""

    async def after(self, call: ToolCall, result: ToolResult, context: BackendContext) -> None: ...


class LocalToolHost:
    """Runs all tool calls of a session on this machine: resolve, decide, run, limit."""

    def __init__(
        self,
        tools: Iterable[Tool[Any]],
        workspace: Workspace,
        hidden_tools: Callable[[], Iterable[Tool[Any]]] = tuple,
        is_offered: Callable[[str], bool] = lambda tool: True,
        interceptor: CallInterceptor | None = None,
        sources: Sequence[ToolSource] = (),
        place: ToolPlace | None = None,
    ) -> None:
        """`hidden_tools` can be called but are not listed; they are created on first use, for a faster start.

        `is_offered` returns whether the current model has a tool; other tools are not listed and not run for it.

        With a `place` the host has only the tools that run there, because the others run on another machine.

        `sources` have tools that may change, such as those of MCP servers; they replace no other tool.
        """
        self._place = place
        self._tools = self._by_name(tools)
        self._make_hidden_tools = hidden_tools
        self._sources = sources
        self._context: BackendContext | None = None
        self._workspace = workspace
        self._is_offered = is_offered
        self._interceptor = interceptor

    @cached_property
    def _hidden_tools(self) -> dict[str, Tool[Any]]:
        return self._by_name(self._make_hidden_tools())

    def _by_name(self, tools: Iterable[Tool[Any]]) -> dict[str, Tool[Any]]:
        return {tool.spec.name: tool for tool in tools if self._place in (None, tool.spec.runs_in)}

    async def open(self, context: BackendContext) -> None:
        """Open the sources of tools; none of them is waited for."""
        self._context = context
        for source in self._sources:
            source.open(context, self._report_change)

    def _report_change(self) -> None:
        if self._context:
            self._context.emit(ToolsChanged(tuple(spec.name for spec in self.specs())))

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for name, tool in self._visible_tools().items() if self._is_offered(name)]

    def _visible_tools(self) -> dict[str, Tool[Any]]:
        more: dict[str, Tool[Any]] = {}
        for source in self._sources:
            for name, tool in source.tools().items():  # hidden tools are created only if a source has tools
                if self._place in (None, tool.spec.runs_in) and name not in self._tools | self._hidden_tools:
                    more.setdefault(name, tool)
        return self._tools | more

    async def run(self, call: ToolCall, context: BackendContext) -> ToolResult:
        with resolving_once():
            return await self._check_and_run(call, context)

    async def _check_and_run(self, call: ToolCall, context: BackendContext) -> ToolResult:
        try:
            resolved = await self.resolve(call)
            self._check_offered(resolved)
            _check_no_masked_secret(resolved)
            if resolved.call != call:
                context.emit(_resolved_call_event(resolved, call))
            permission = await resolved.tool.permission(resolved.params, self._workspace)
        except ToolError as error:
            return failed_result(call.id, error)
        if self._interceptor and (reason := await self._interceptor.before(resolved.call, context)):
            return _hook_denied_result(call.id, reason)
        permission = _permission_for_call(permission, call, resolved.tool)
        decision = await context.decide(permission)
        if decision.answer != "allow":
            return denied_result(call.id, decision, permission)
        if decision.hunks is not None:
            return await self._run_selected_hunks(resolved, call, permission, decision.hunks, context)
        if decision.read_only:
            return await self._run_read_only(resolved, call, permission, context)
        return await self._run(resolved, call, context)

    async def _run_read_only(
        self, resolved: ResolvedCall, call: ToolCall, permission: Permission, context: BackendContext
    ) -> ToolResult:
        """Run a command with the workspace read-only. If that makes it fail, ask whether to run it again and write."""
        result = await self._run(resolved, call, context, read_only=True)
        if not _is_write_denied(result):
            return result
        decision = await context.decide(_permission_to_write(permission))
        if decision.answer == "allow":
            return await self._run(resolved, call, context)
        if decision.answer == "cancel":
            return denied_result(call.id, decision, permission)
        note = f"[the user did not allow the command to write: {decision.feedback or decision.reason or 'no reason'}]"
        result = msgspec.structs.replace(result, for_model=f"{result.for_model}\n{note}")
        return await self._after_call(resolved, result, context)

    async def _run_selected_hunks(
        self,
        resolved: ResolvedCall,
        call: ToolCall,
        requested: Permission,
        hunks: tuple[int, ...],
        context: BackendContext,
    ) -> ToolResult:
        """Run only the selected hunks of a call, after checking it again."""
        from ostler.tools.editing.selected_hunks import with_selection_note  # imported late: rarely needed

        try:
            resolved = await restrict_to_hunks(resolved, requested, hunks, self._workspace)
        except ToolError as error:
            return failed_result(call.id, error)
        if self._interceptor and (reason := await self._interceptor.before(resolved.call, context)):
            return _hook_denied_result(call.id, reason)
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
        *,
        read_only: bool = False,
    ) -> ToolResult:
        spec = resolved.tool.spec
        effects = spec.effects and not (read_only and self._interceptor is None)  # a hook may change something
        started = ToolStarted(call.id, spec.name, effects)
        await context.record_start(started, files_only=await self._changes_files_only(spec))
        result = await self._call_tool(resolved, call, context, read_only=read_only)
        result = limit_output(
            _with_repair_notes(transform(result) if result.status == "ok" else result, resolved.notes)
        )
        if read_only and _is_write_denied(result):  # it may run again
            return result
        return await self._after_call(resolved, result, context)

    async def _after_call(self, resolved: ResolvedCall, result: ToolResult, context: BackendContext) -> ToolResult:
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
            raise ToolError(f"this agent does not have the tool {name}", code="no_such_tool", hint="use another tool")

    async def _call_tool(
        self, resolved: ResolvedCall, call: ToolCall, context: BackendContext, *, read_only: bool
    ) -> ToolResult:
        from ostler.tools.local_tool_context import LocalToolContext  # imported late: only a call needs it

        place = resolved.tool.spec.runs_in
        tool_context = LocalToolContext(call, place, self._workspace, context, read_only=read_only)
        try:
            result = await resolved.tool.run(resolved.params, tool_context)
        except ToolError as error:
            return failed_result(call.id, error)
        if resolved.call.tool != call.tool:
            from ostler.tools.alias_results import format_result  # imported late: only aliases need it

            result = format_result(result, call)
        return msgspec.structs.replace(result, call_id=call.id)

    async def resolve(self, call: ToolCall) -> ResolvedCall:
        """Resolve a call to a tool and parameters. Raises `ToolError`."""
        return await resolve_call(call, self._hidden_tools | self._visible_tools(), self._workspace)

    async def permission(self, call: ToolCall) -> Permission:
        """Return the permission that a call needs, without deciding or running it. Raises `ToolError`."""
        resolved = await self.resolve(call)
        return await resolved.tool.permission(resolved.params, self._workspace)

    async def aclose(self) -> None:
        """Close all sources and the workspace, even if closing one fails."""
        self._context = None
        async with AsyncExitStack() as closing:
            if close := getattr(self._workspace, "aclose", None):
                closing.push_async_callback(close)
            for source in self._sources:
                closing.push_async_callback(source.aclose)


def _check_no_masked_secret(resolved: ResolvedCall) -> None:
    """Raise `ToolError` if the model would write the mask marker over a secret that it cannot see."""
    call, spec = resolved.call, resolved.tool.spec
    if call.origin == "model" and spec.kind == "edit" and MASK_MARKER in str(call.arguments):
        raise ToolError(
            f"{MASK_MARKER} is a placeholder for a hidden secret and would overwrite it in the file",
            code="withheld",
            hint="change only the lines around it",
        )


def failed_result(call_id: str, error: ToolError) -> ToolResult:
    """Return a `failed` result with the error, so that the model can react to it."""
    return ToolResult(call_id, "failed", f"Error: {error}", Display(str(error)), fault=error.fault)


def denied_result(call_id: str, decision: Decision, permission: Permission) -> ToolResult:
    """Return a `denied` result with an error code and the user's feedback or the policy's reason.

    The result is `cancelled` if the approval request was withdrawn.
    """
    if decision.answer == "cancel":
        return ToolResult(call_id, "cancelled", "Cancelled before it ran; nothing was done.", Display("cancelled"))
    texts = {"person": "The user denied this.", "nobody": "Denied."}
    text = texts.get(decision.by, "Denied by the permission rules.")
    reason = decision.feedback or decision.reason
    outside = [need.subject for need in permission.needs if need.key != "bash" and need.subject.startswith("/")]
    if outside and not any(path in reason for path in outside):
        reason = f"{', '.join(outside)}: {reason}"
    fault = Fault("outside_workspace" if outside else "denied", reason or text)
    return ToolResult(call_id, "denied", f"{text} {reason}".strip(), Display(reason or text), fault=fault)


def _is_write_denied(result: ToolResult) -> bool:
    return result.fault is not None and result.fault.code == WRITE_DENIED


def _permission_to_write(permission: Permission) -> Permission:
    """Return the permission to run a command again with a writable workspace; the preview says why."""
    note = DisplayFields((("first run", "failed, because the workspace was read-only; now it could write there"),))
    preview = msgspec.structs.replace(permission.preview, blocks=(*permission.preview.blocks, note))
    return msgspec.structs.replace(permission, preview=preview, may_run_read_only=False, read_only_needs=())


def _hook_denied_result(call_id: str, reason: str) -> ToolResult:
    fault = Fault("denied_by_hook", reason)
    return ToolResult(call_id, "denied", f"The user's hook denied this. {reason}", Display(reason), fault=fault)


def _resolved_call_event(resolved: ResolvedCall, call: ToolCall) -> ToolCalled:
    """Return an event with the resolved call; its title is the name that was called, if it differs."""
    title = call.tool if resolved.call.tool != call.tool else ""
    return ToolCalled(resolved.call, title, resolved.tool.spec.kind)


def _with_repair_notes(result: ToolResult, notes: Sequence[str]) -> ToolResult:
    """Return the result with a note about the repairs."""
    if not notes:
        return result
    note = f"the call was repaired: {', '.join(notes)}"
    display = Display(result.for_human.summary, (*result.for_human.blocks, DisplayText(note)))
    return msgspec.structs.replace(result, for_model=f"{result.for_model}\n[{note}]", for_human=display)


def _permission_for_call(permission: Permission, call: ToolCall, tool: Tool[Any]) -> Permission:
    diffs = [block for block in permission.preview.blocks if isinstance(block, DisplayDiff)]
    by_hunk = (
        HUNKS_ARGUMENT in getattr(tool, "unlisted", ()) and bool(diffs) and not any(diff.truncated for diff in diffs)
    )
    may_run_read_only = permission.may_run_read_only and getattr(tool, "runs_read_only", False)
    return msgspec.structs.replace(permission, call_id=call.id, by_hunk=by_hunk, may_run_read_only=may_run_read_only)
