"""A child session: it works by itself, asks where its parent asks, and its parent hears how it stands."""

from collections.abc import Callable
from typing import Any

import msgspec

from ostler.core.events import ChildProgress, Event, MessageDone, StateChanged, ToolCalled, ToolStarted, UsageReported
from ostler.core.permission import Decision, Permission, Question, QuestionReply, Rule
from ostler.core.sessions import TurnState
from ostler.core.tools import ChildTask
from ostler.policy.verdict import Policy, evaluate_permission
from ostler.session.session import LocalSession


class ChildSession(LocalSession):
    """May do what both its own agent's policy and its parent's judge let it."""

    def __init__(
        self,
        parent: LocalSession,
        task: ChildTask,
        policy: Callable[[], Policy],
        *,
        deny_asks: bool,
        **session_arguments: Any,
    ) -> None:
        """`unasked`: the parent asks nobody, so what this one would ask for is refused."""
        self.texts: list[str] = []
        self._parent = parent
        self._task = task
        self._own_policy = policy
        self._deny_asks = deny_asks
        self._child_state: TurnState = "planning"
        self._last_tool = ""
        self._tokens = 0
        self._cost: float | None = 0.0
        super().__init__(policy=policy, mask=parent.mask, **session_arguments)

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
        """The strictest of what its own rules say and what is decided in the parent, where a person may be asked."""
        call = self._parent.state.calls.get(self._task.id)
        given = (*(call.rules if call else ()), *self._task.rules)
        own = evaluate_permission(
            permission, self._own_policy(), grants=self._parent.standing_rules(), restrictions=given
        )
        if own.action == "deny":
            return Decision("deny", reason=own.reason)
        if own.action == "ask" and self._deny_asks:
            return Decision("deny", reason="a read-only agent may run it only where a sandbox or a rule holds it")
        asks = [Rule(need.key, "*", "ask", f"agent {self._task.agent}") for need in permission.needs]
        title = f"{self._task.agent}: {permission.title}"
        above = msgspec.structs.replace(permission, title=title, call_id=self._task.id)
        return await self._parent.decide_for_child(above, asks if own.action == "ask" else ())

    async def record_start(self, event: ToolStarted, *, files_only: bool = False) -> None:
        """What a child changes is undone with its parent's turn."""
        if event.effects:
            await self._parent.prepare_effects(self._task.id, files_only=files_only)
        await super().record_start(event, files_only=files_only)

    async def ask(self, question: Question) -> QuestionReply:
        """There, where a person looks."""
        by = f"{self._task.agent}: {question.asked_by}" if question.asked_by else self._task.agent
        return await self._parent.ask(msgspec.structs.replace(question, asked_by=by))

    def _add_usage(self, usage: UsageReported) -> None:
        """What a child uses counts for its parent's limits too."""
        self._tokens += usage.tokens_in + usage.tokens_out
        self._cost = None if self._cost is None or usage.cost is None else self._cost + usage.cost
        counts = (usage.tokens_in, usage.tokens_out, usage.tokens_cached, usage.cost)
        self._parent.emit(UsageReported(usage.model, *counts, child_id=self.id))
