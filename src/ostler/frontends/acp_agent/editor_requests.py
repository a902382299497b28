"""Sends approval requests and questions to the editor and records the answer."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from ostler.core.events import (
    Event,
    PermissionAsked,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
    ToolCalled,
)
from ostler.core.permission import AnswerOption, Decision, Question, QuestionReply
from ostler.frontends.acp_agent.editor_client import EditorClient
from ostler.frontends.acp_agent.tool_content import contents_of, locations_of, title_of
from ostler.interaction.approval_form import SCOPES, decision_of
from ostler.interaction.open_requests import AnswerCallback
from ostler.session.answer_options import unnamed_rules
from ostler.text.sanitise import escape_invisible
from ostler.wire.acp import PermissionOption, ToolCallContent, ToolCallFields, text_content
from ostler.wire.acp_updates import AcpToolCall, AcpToolCallUpdate
from ostler.wire.elicitation import elicitation_mode, elicitation_params, elicitation_reply
from ostler.wire.jsonrpc import PeerClosed, RpcError

OPTION_KINDS = {
    "allow_once": "allow_once",
    "allow_session": "allow_always",
    "allow_always": "allow_always",
    "deny": "reject_once",
    "deny_always": "reject_always",
}
PROMPT_OPTIONS = [
    AnswerOption("once", "Allow once", "allow_once"),
    AnswerOption("deny", "Send the prompt without it", "deny"),
]
FindCall = Callable[[str], ToolCalled | None]


class EditorRequests:
    """The open requests to the editor; a request is cancelled if it is answered elsewhere."""

    def __init__(self, editor: EditorClient, cwd: str, on_answer: AnswerCallback, find_call: FindCall) -> None:
        self._editor = editor
        self._cwd = cwd
        self._on_answer = on_answer
        self._find_call = find_call
        self._pending: dict[str, asyncio.Task[None]] = {}

    def on_event(self, event: Event) -> None:
        match event:
            case PermissionAsked(ask_id):
                self._start(ask_id, self._request_permission(event))
            case QuestionAsked(question):
                self._start(question.id, self._request_elicitation(question))
            case PermissionDecided(ask_id) | QuestionAnswered(ask_id):
                if task := self._pending.pop(ask_id, None):
                    task.cancel()
            case _:
                pass

    async def confirm(self, request_id: str, text: str) -> bool:
        """Ask the user about a prompt before it is sent. Return whether they agree; a cancelled request raises."""
        title = escape_invisible(text)
        self._editor.send_update(AcpToolCall(request_id, title=title, kind="other", status="pending"))
        status = "failed"
        try:
            answer = await self._editor.request(
                "session/request_permission",
                toolCall=ToolCallFields(request_id, title=title, kind="other", status="pending"),
                options=[PermissionOption(item.id, item.label, OPTION_KINDS[item.kind]) for item in PROMPT_OPTIONS],
            )
            decision = decision_from_response(answer, PROMPT_OPTIONS)
            status = "completed" if decision.answer == "allow" else "failed"
        except (RpcError, PeerClosed):
            return False
        finally:
            self._editor.send_update(AcpToolCallUpdate(request_id, status=status))
        if decision.answer == "cancel":
            raise asyncio.CancelledError
        return decision.answer == "allow"

    async def aclose(self) -> None:
        """Cancel all open requests."""
        tasks, self._pending = [*self._pending.values()], {}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _start(self, ask_id: str, request: Any) -> None:
        self._pending[ask_id] = asyncio.create_task(request, name=f"ask {ask_id}")

    async def _request_permission(self, event: PermissionAsked) -> None:
        options = [option for option in event.permission.options if not (event.once_only and option.kind in SCOPES)]
        try:
            answer = await self._editor.request(
                "session/request_permission",
                toolCall=self._tool_call_fields(event),
                options=[PermissionOption(option.id, option.label, OPTION_KINDS[option.kind]) for option in options],
            )
            decision = decision_from_response(answer, options)
        except (RpcError, PeerClosed) as error:
            decision = Decision("deny", by="nobody", reason=f"the editor could not show the approval request: {error}")
        self._pending.pop(event.ask_id, None)
        self._on_answer(event.ask_id, decision)

    def _tool_call_fields(self, event: PermissionAsked) -> ToolCallFields:
        """Return the pending call with a preview of its effect."""
        permission, preview = event.permission, event.permission.preview
        called = self._find_call(permission.call_id)
        arguments = called.call.arguments if called else {}
        reasons = [need.reason for need in permission.needs if need.reason]
        title = " · ".join([title_of(called.call) if called else permission.title, *dict.fromkeys(reasons)])
        return ToolCallFields(
            permission.call_id or event.ask_id,
            title=escape_invisible(title),
            kind=called.kind if called else None,
            status="pending",
            content=(*contents_of(preview, self._cwd), *_rule_list(event)),
            locations=locations_of(arguments, preview, self._cwd) or None,
            raw_input=arguments or None,
        )

    async def _request_elicitation(self, question: Question) -> None:
        reply = QuestionReply("decline")
        supported = self._editor.capabilities.elicitation or {}
        if isinstance(supported.get(elicitation_mode(question)), Mapping):
            try:
                response = await self._editor.request("elicitation/create", **elicitation_params(question))
                reply = elicitation_reply(response)
            except (RpcError, PeerClosed):
                reply = QuestionReply("decline")
        self._pending.pop(question.id, None)
        self._on_answer(question.id, reply)


def _rule_list(event: PermissionAsked) -> tuple[ToolCallContent, ...]:
    """Return the rules of the lasting answers if the labels do not name them."""
    rules = unnamed_rules(event.permission)
    if event.once_only or not rules:
        return ()
    lines = "\n".join(f"- {rule}" for rule in rules)
    text = f"An answer for the session or the project adds these rules ({len(rules)}):\n{lines}"
    return (ToolCallContent("content", text_content(text)),)


def decision_from_response(response: Any, options: list[AnswerOption]) -> Decision:
    """Convert the editor's response to a decision. A response without a valid choice is a denial."""
    outcome = response.get("outcome") if isinstance(response, dict) else None
    outcome = outcome if isinstance(outcome, dict) else {}
    if outcome.get("outcome") == "cancelled":
        return Decision("cancel", by="person")
    chosen = next((option for option in options if option.id == outcome.get("optionId")), None)
    if outcome.get("outcome") != "selected" or chosen is None:
        return Decision("deny", by="nobody", reason="the editor returned an unknown option")
    return decision_of(chosen)
