"""A child session: it works by itself, asks where its parent asks, and its parent hears how it stands."""

from collections.abc import Callable
from typing import Any

import msgspec

from ostler.policy.verdict import Policy, verdict
from ostler.session.session import Session
from ostler.vocabulary.events import ChildProgress, Event, MessageDone, StateChanged, ToolCalled, UsageReported
from ostler.vocabulary.permission import Decision, Permission, Question, Reply, Rule
from ostler.vocabulary.sessions import TurnState
from ostler.vocabulary.tools import ChildTask


class ChildSession(Session):
    """May do what both its own agent's policy and its parent's judge let it."""

    def __init__(
        self, parent: Session, task: ChildTask, policy: Callable[[], Policy], *, unasked: bool, **joined: Any
    ) -> None:
        """`unasked`: the parent asks nobody, so what this one would ask for is refused."""
        self.said: list[str] = []
        self._parent = parent
        self._task = task
        self._own = policy
        self._unasked = unasked
        self._doing: TurnState = "planning"
        self._last = ""
        self._tokens = 0
        self._cost: float | None = 0.0
        super().__init__(policy=policy, conceal=parent.conceal, **joined)

    def emit(self, event: Event) -> None:
        super().emit(event)
        match event:
            case StateChanged(state):
                self._doing = state
            case ToolCalled(call):
                self._last = call.tool
            case MessageDone(message):
                self.said += filter(None, [message.text])
                return
            case UsageReported():
                self._charge(event)
            case _:
                return
        self._parent.emit(ChildProgress(self.id, self._doing, self._last, self._tokens, self._cost))

    async def decide(self, permission: Permission) -> Decision:
        """The strictest of what its own rules say and what is decided in the parent, where a person may be asked."""
        call = self._parent.state.calls.get(self._task.id)
        given = (*(call.rules if call else ()), *self._task.rules)
        own = verdict(permission, self._own(), grants=self._parent.standing(), narrow=given)
        if own.action == "deny":
            return Decision("deny", reason=own.why)
        if own.action == "ask" and self._unasked:
            return Decision("deny", reason="a read-only agent may run it only where a sandbox or a rule holds it")
        asks = [Rule(need.key, "*", "ask", f"agent {self._task.agent}") for need in permission.needs]
        title = f"{self._task.agent}: {permission.title}"
        above = msgspec.structs.replace(permission, title=title, call_id=self._task.id)
        return await self._parent.decide_for_child(above, asks if own.action == "ask" else ())

    async def ask(self, question: Question) -> Reply:
        """There, where a person looks."""
        by = f"{self._task.agent}: {question.by}" if question.by else self._task.agent
        return await self._parent.ask(msgspec.structs.replace(question, by=by))

    def _charge(self, usage: UsageReported) -> None:
        """What a child uses counts for its parent's limits too."""
        self._tokens += usage.tokens_in + usage.tokens_out
        self._cost = None if self._cost is None or usage.cost is None else self._cost + usage.cost
        counts = (usage.tokens_in, usage.tokens_out, usage.tokens_cached, usage.cost)
        self._parent.emit(UsageReported(usage.model, *counts, child_id=self.id))
