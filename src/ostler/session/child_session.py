"""A child session: reports progress and usage to its parent and asks for permission there."""

import asyncio
from typing import Any

import msgspec

from ostler.core.display import Display
from ostler.core.events import (
    ChildEnded,
    ChildProgress,
    ChildStarted,
    Event,
    MessageDone,
    StateChanged,
    ToolCalled,
    ToolStarted,
    TurnEnded,
    UsageReported,
)
from ostler.core.permission import Decision, Permission, Question, QuestionReply, Rule
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import TurnState
from ostler.core.tools import ChildTask, ToolResult
from ostler.policy.verdict import evaluate_permission
from ostler.session.access import SessionAccess
from ostler.session.session import LocalSession


class ChildSession(LocalSession):
    """A session that may only do what its own policy and its parent both allow."""

    def __init__(
        self,
        parent: LocalSession,
        task: ChildTask,
        *,
        policy: SessionAccess,
        deny_asks: bool,
        **session_arguments: Any,
    ) -> None:
        """With `deny_asks` a call that needs approval is denied, because the parent cannot ask the user."""
        self.texts: list[str] = []
        self._parent = parent
        self._task = task
        self._own_policy = policy.policy
        self._deny_asks = deny_asks
        self._child_state: TurnState = "planning"
        self._last_tool = ""
        self._tokens = 0
        self._cost: float | None = 0.0
        super().__init__(policy=policy, **session_arguments)

    def emit(self, event: Event) -> None:
        super().emit(event)
        match event:
            case StateChanged(state):
                self._child_state = state
            case ToolCalled(call):
                self._last_tool = call.tool
            case MessageDone(message):
                self.texts += filter(None, [message.text])
                return
            case UsageReported():
                self._add_usage(event)
            case _:
                return
        self._parent.emit(ChildProgress(self.id, self._child_state, self._last_tool, self._tokens, self._cost))

    async def decide(self, permission: Permission) -> Decision:
        """Deny if the child's own rules deny, else let the parent decide, which may ask the user."""
        call = self._parent.state.calls.get(self._task.id)
        restrictions = call.rule_layers() if call else ()
        own = evaluate_permission(
            permission, self._own_policy(), grants=self._parent.standing_rules(), restrictions=restrictions
        )
        if own.action == "deny":
            return Decision("deny", reason=own.reason)
        if own.action == "ask" and self._deny_asks:
            return Decision(
                "deny", reason="a read-only agent may run commands only in a sandbox or where a rule allows them"
            )
        asks = [[Rule(need.key, "*", "ask", f"agent {self._task.agent}") for need in permission.needs]]
        title = f"{self._task.agent}: {permission.title}"
        request = msgspec.structs.replace(permission, title=title, call_id=self._task.id)
        return await self._parent.decide_for_child(request, asks if own.action == "ask" else ())

    def may_read(self, call_id: str, path: str) -> bool:
        """Return whether both the child's own rules and the parent's allow it."""
        return super().may_read(call_id, path) and self._parent.may_read(self._task.id, path)

    async def record_start(self, event: ToolStarted, *, files_only: bool = False) -> None:
        """Changes of a child are undone with its parent's turn."""
        if event.effects:
            await self._parent.prepare_effects(self._task.id, files_only=files_only)
        await super().record_start(event, files_only=files_only)

    async def ask(self, question: Question) -> QuestionReply:
        """Ask through the parent, naming this agent."""
        asked_by = f"{self._task.agent}: {question.asked_by}" if question.asked_by else self._task.agent
        return await self._parent.ask(msgspec.structs.replace(question, asked_by=asked_by))

    def _add_usage(self, usage: UsageReported) -> None:
        """Add the usage here and report it to the parent, whose limits include it."""
        self._tokens += usage.tokens_in + usage.tokens_out
        self._cost = None if self._cost is None or usage.cost is None else self._cost + usage.cost
        counts = (usage.tokens_in, usage.tokens_out, usage.tokens_cached, usage.cost)
        self._parent.emit(UsageReported(usage.model, *counts, child_id=self.id))


async def run_child(parent: LocalSession, child: ChildSession, task: ChildTask) -> ToolResult:
    """Run the task of a child and close it. If it is interrupted, the result has the output so far."""
    parent.emit(ChildStarted(child.id, task.id, task.agent, task.title))
    ended = TurnEnded("", "failed")
    try:
        turn = child.start(Prompt(f"task-{task.id}", (TextContent(task.prompt),), origin="parent"))
        try:
            ended = await turn.wait()
        except asyncio.CancelledError:
            turn.cancel()
            ended = await turn.wait()
    finally:
        await child.aclose()
        parent.emit(ChildEnded(child.id, ended.reason))
    return _result(child, task, ended)


def _result(child: ChildSession, task: ChildTask, ended: TurnEnded) -> ToolResult:
    data = {"session": child.id, "agent": task.agent, "reason": ended.reason}
    if ended.reason == "done":
        display = Display(f"{task.agent}: {task.title}")
        return ToolResult(task.id, "ok", child.texts[-1] if child.texts else "(no output)", display, data)
    detail = ended.limit or (str(ended.fault) if ended.fault else "")
    summary = f"The task was interrupted: {ended.reason}{f' ({detail})' if detail else ''}."
    output = "\n\n".join(child.texts)  # all texts: the last one may be incomplete
    text = f"{summary} Output so far:\n{output}" if output else f"{summary} No output before that."
    status = "cancelled" if ended.reason == "cancelled" else "failed"
    return ToolResult(task.id, status, text, Display(summary), data, fault=ended.fault)  # type: ignore[arg-type]
