"""Asks and questions of a session, put to the person through the editor; the first answer counts, whoever gives it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from ostler.faces.editor.premises import Editor
from ostler.faces.editor.showing import contents_of, locations_of, title_of
from ostler.text.sanitise import visible
from ostler.vocabulary.events import (
    Event,
    PermissionAsked,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
    ToolCalled,
)
from ostler.vocabulary.permission import Decision, Option, Question, Reply
from ostler.wire.acp import PermissionOption, ToolCallFields
from ostler.wire.jsonrpc import PeerGone, RpcError

KINDS = {
    "allow_once": "allow_once",
    "allow_session": "allow_always",
    "allow_always": "allow_always",
    "deny": "reject_once",
    "deny_always": "reject_always",
}
LASTS: dict[str, Literal["session", "project"]] = {
    "allow_session": "session",
    "allow_always": "project",
    "deny_always": "project",
}
Settle = Callable[[str, Decision | Reply], bool]
FindCall = Callable[[str], ToolCalled | None]


class Asking:
    """What waits for the person: a request to the editor each, taken back when somebody else has answered."""

    def __init__(self, editor: Editor, cwd: str, settle: Settle, find: FindCall) -> None:
        self._editor = editor
        self._cwd = cwd
        self._settle = settle
        self._find = find
        self._open: dict[str, asyncio.Task[None]] = {}

    def hear(self, event: Event) -> None:
        match event:
            case PermissionAsked(ask_id):
                self._begin(ask_id, self._ask(event))
            case QuestionAsked(question):
                self._begin(question.id, self._question(question))
            case PermissionDecided(ask_id) | QuestionAnswered(ask_id):
                if task := self._open.pop(ask_id, None):
                    task.cancel()
            case _:
                pass

    async def aclose(self) -> None:
        """Nobody will be asked any more."""
        tasks, self._open = [*self._open.values()], {}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, ask_id: str, asking: Any) -> None:
        self._open[ask_id] = asyncio.create_task(asking, name=f"ask {ask_id}")

    async def _ask(self, asked: PermissionAsked) -> None:
        options = [o for o in asked.permission.options if not (asked.once_only and o.kind in LASTS)]
        try:
            answer = await self._editor.ask(
                "session/request_permission",
                toolCall=self._shown(asked),
                options=[PermissionOption(option.id, option.label, KINDS[option.kind]) for option in options],
            )
            decision = decision_of(answer, options)
        except (RpcError, PeerGone) as error:
            decision = Decision("deny", by="nobody", reason=f"the editor could not ask: {error}")
        self._open.pop(asked.ask_id, None)
        self._settle(asked.ask_id, decision)

    def _shown(self, asked: PermissionAsked) -> ToolCallFields:
        """The call as it waits, with what it would do."""
        permission, preview = asked.permission, asked.permission.preview
        called = self._find(permission.call_id)
        arguments = called.call.arguments if called else {}
        why = [need.why for need in permission.needs if need.why]
        title = " · ".join([title_of(called.call) if called else permission.title, *dict.fromkeys(why)])
        return ToolCallFields(
            permission.call_id or asked.ask_id,
            title=visible(title),
            kind=called.kind if called else None,
            status="pending",
            content=contents_of(preview, self._cwd),
            locations=locations_of(arguments, preview, self._cwd) or None,
            raw_input=arguments or None,
        )

    async def _question(self, question: Question) -> None:
        reply = Reply("decline")
        can = self._editor.can.elicitation or {}
        asked = _address(question) if question.url else _form(question)
        if isinstance(can.get(asked["mode"]), Mapping):
            try:
                reply = reply_of(await self._editor.ask("elicitation/create", **asked))
            except (RpcError, PeerGone):
                reply = Reply("decline")
        self._open.pop(question.id, None)
        self._settle(question.id, reply)


def _form(question: Question) -> dict[str, Any]:
    schema = question.schema or {"type": "object", "properties": {"answer": {"type": "string"}}}
    return {"mode": "form", "message": _message(question), "requestedSchema": schema}


def _address(question: Question) -> dict[str, Any]:
    """Somewhere to go; the editor shows it and opens it only where the person wants to."""
    return {"mode": "url", "message": _message(question), "url": question.url, "elicitationId": question.id}


def _message(question: Question) -> str:
    return f"{question.by}: {question.text}" if question.by else question.text


def decision_of(answer: Any, options: list[Option]) -> Decision:
    """What the person chose; an answer that chooses nothing allows nothing."""
    outcome = answer.get("outcome") if isinstance(answer, dict) else None
    outcome = outcome if isinstance(outcome, dict) else {}
    if outcome.get("outcome") == "cancelled":
        return Decision("cancel", by="person")
    chosen = next((option for option in options if option.id == outcome.get("optionId")), None)
    if outcome.get("outcome") != "selected" or chosen is None:
        return Decision("deny", by="nobody", reason="the editor's answer chose none of the options")
    allowed = not chosen.kind.startswith("deny")
    return Decision("allow" if allowed else "deny", "person", LASTS.get(chosen.kind, "once"), chosen.id)


def reply_of(answer: Any) -> Reply:
    """What the person wrote, or that they did not."""
    action = answer.get("action") if isinstance(answer, dict) else None
    if action not in ("accept", "decline", "cancel"):
        return Reply("decline")
    content = answer.get("content")
    return Reply(cast(Literal["accept", "decline", "cancel"], action), content if isinstance(content, dict) else None)
