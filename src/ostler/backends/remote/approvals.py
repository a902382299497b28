"""Approval requests of the session that clients tell each other through the server.

The tool host decides alone: what it tells others is who waits for an answer, and with its user's consent what about.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from ostler.core.display import Display, DisplayDiff, DisplayFields, DisplayText
from ostler.core.events import Envelope, Event, Notice, PermissionAsked, PermissionDecided
from ostler.core.permission import Decision, Permission, Question, QuestionReply
from ostler.core.protocols import Session
from ostler.text.sanitise import escape_to_one_line, sanitise
from ostler.wire.client_frames import ApprovalAnswer, ApprovalRequest, ApprovalResolved

ALLOW, DENY = "Allow once", "Deny"
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"answer": {"enum": [ALLOW, DENY]}},
    "required": ["answer"],
}
MAX_TEXT = 20_000
MAX_FEEDBACK = 2000
MAX_OPEN = 8


class HostRequests:
    """Tells the other clients about the open requests of this machine, and takes answers if its user agreed to that.

    An answer allows or denies one call. A dangerous call is never answered by others.
    """

    def __init__(
        self, send: Callable[[ApprovalRequest | ApprovalResolved], object], ran_here: Callable[[str], bool]
    ) -> None:
        """`ran_here` tells whether a call is the server's; requests for others concern nobody else."""
        self._send = send
        self._ran_here = ran_here
        self._open: dict[str, ApprovalRequest] = {}
        self._session: Session | None = None
        self._following: asyncio.Task[None] | None = None
        self._others_may_answer = False

    def follow(self, session: Session, *, others_may_answer: bool) -> None:
        """Begin to tell others about the requests of the session."""
        self._session, self._others_may_answer = session, others_may_answer
        following = self._follow(session.subscribe(session.last_seq))
        self._following = asyncio.create_task(following, name="requests for other clients")

    def repeat(self) -> None:
        """Send what is open, after a new connection."""
        for request in self._open.values():
            self._send(request)

    def answer(self, answer: ApprovalAnswer) -> None:
        """Use the answer of another client, if it may answer this request."""
        request, decision = self._open.get(answer.ask_id), answer.decision
        if self._session is None or request is None or request.only_at_host or decision is None:
            return
        if decision.answer in ("allow", "deny"):
            who = escape_to_one_line(answer.who[:100]) or "another client"
            feedback = sanitise(decision.feedback)[:MAX_FEEDBACK]
            self._session.answer(answer.ask_id, Decision(decision.answer, "person", feedback=feedback, who=who))

    def close(self) -> None:
        if self._following:
            self._following.cancel()

    async def _follow(self, envelopes: AsyncIterator[Envelope]) -> None:
        async for envelope in envelopes:
            match envelope.event:
                case PermissionAsked(ask_id, permission, once_only) if self._ran_here(permission.call_id):
                    only_here = not self._others_may_answer or once_only or permission.dangerous
                    told = Permission(permission.title, call_id=permission.call_id) if only_here else permission
                    request = ApprovalRequest(ask_id, permission=told, once_only=once_only, only_at_host=only_here)
                    self._open[ask_id] = request
                    self._send(request)
                case PermissionDecided(ask_id, _, decision) if self._open.pop(ask_id, None):
                    self._send(ApprovalResolved(ask_id, decision=Decision(decision.answer, decision.by)))
                case _:
                    pass


class OtherRequests:
    """Shows the requests of the tool host, and questions of the server, to the user of this client.

    The server itself is never asked for permission, and never answers for it.
    """

    def __init__(
        self,
        session_id: str,
        send: Callable[[ApprovalAnswer], object],
        ask: Callable[[Question], Awaitable[QuestionReply]],
        emit: Callable[[Event], None],
    ) -> None:
        self._session_id = session_id
        self._send = send
        self._ask = ask
        self._emit = emit
        self._told: set[str] = set()
        self._asked: set[str] = set()
        self._open: dict[str, asyncio.Task[None]] = {}

    def on_request(self, request: ApprovalRequest) -> None:
        if request.question is not None:
            self._start(request.ask_id, request.question, is_approval=False)
        elif request.permission is not None:
            self._show(request, request.permission)

    def on_resolved(self, ask_id: str) -> None:
        self._told.discard(ask_id)
        self._withdraw(ask_id)

    def on_connected(self) -> None:
        """Close what was asked before: the server sends again what is still open."""
        for ask_id in self._asked:
            self._withdraw(ask_id)
        self._asked.clear()

    def close(self) -> None:
        for task in tuple(self._open.values()):
            task.cancel()

    def _show(self, request: ApprovalRequest, permission: Permission) -> None:
        ask_id, host = request.ask_id, escape_to_one_line(request.host.name[:100]) or "the tool host"
        if not request.only_at_host:
            self._asked.add(ask_id)
            text = f"{permission.title}\n{_preview_text(permission.preview)}".strip()[:MAX_TEXT]
            self._start(ask_id, Question(ask_id, text, SCHEMA, asked_by=host), is_approval=True)
        elif ask_id not in self._told:
            self._told.add(ask_id)
            self._emit(Notice("info", f"{host} waits for an answer there: {sanitise(permission.title)[:500]}"))

    def _start(self, ask_id: str, question: Question, *, is_approval: bool) -> None:
        """Ask the user. The same question is asked once, and few at a time."""
        if ask_id not in self._open and len(self._open) < MAX_OPEN:
            work = self._run(ask_id, question, is_approval=is_approval)
            self._open[ask_id] = asyncio.create_task(work, name="question of the server")

    def _withdraw(self, ask_id: str) -> None:
        if task := self._open.pop(ask_id, None):
            task.cancel()

    async def _run(self, ask_id: str, question: Question, *, is_approval: bool) -> None:
        reply = await self._ask(question)
        self._open.pop(ask_id, None)
        chosen = (reply.content or {}).get("answer") if reply.action == "accept" else None
        if not is_approval:
            self._send(ApprovalAnswer(ask_id, self._session_id, reply=reply))
        elif chosen in (ALLOW, DENY):
            decision = Decision("allow" if chosen == ALLOW else "deny", "person")
            self._send(ApprovalAnswer(ask_id, decision=decision))


def _preview_text(preview: Display) -> str:
    parts = [preview.summary]
    for block in preview.blocks:
        match block:
            case DisplayText(text):
                parts.append(text)
            case DisplayDiff(path, diff):
                parts.append(diff or path)
            case DisplayFields(pairs):
                parts += [f"{name}: {value}" for name, value in pairs]
            case _:
                pass
    return "\n".join(filter(None, parts))
