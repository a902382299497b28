"""Asks the client's user (elicitation): approval requests and questions of a session, as forms or URLs."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from ostler.core.events import PermissionAsked
from ostler.core.permission import AnswerOption, Decision, Question, QuestionReply
from ostler.core.protocols import Session
from ostler.interaction.approval_form import decision_of
from ostler.rendering.asks import render_ask
from ostler.rendering.style import Styler
from ostler.text.sanitise import escape_invisible
from ostler.wire.elicitation import elicitation_mode, elicitation_params, elicitation_reply
from ostler.wire.jsonrpc import PeerClosed, RpcError

MAX_MESSAGE = 50_000
# Answers that store rules for the project are left out: a client may let a model answer.
OFFERED_KINDS = ("allow_once", "allow_session", "deny")

# Sends the parameters of a request to the client and returns its answer. Raises `RpcError`, `PeerClosed` or
# `TimeoutError`.
AskClient = Callable[[Mapping[str, Any]], Awaitable[Any]]


def can_show(capabilities: Any, mode: Literal["form", "url"] = "form") -> bool:
    """Return whether a client with these capabilities can ask its user. Without modes, it supports forms."""
    elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    if not isinstance(elicitation, dict):
        return False
    return mode in elicitation or (mode == "form" and "url" not in elicitation)


async def request_approval(session: Session, asked: PermissionAsked, ask: AskClient) -> None:
    """Show an approval request to the client's user and answer it. If that fails, the call is denied."""
    options = [option for option in asked.permission.options if option.kind in OFFERED_KINDS]
    message = "\n".join(render_ask(asked, Styler(False)))
    if len(message) > MAX_MESSAGE:
        decision = _deny("it is too long to show in the client")
    else:
        decision = await _ask_for_decision(ask, message, options)
    session.answer(asked.ask_id, decision)


async def _ask_for_decision(ask: AskClient, message: str, options: list[AnswerOption]) -> Decision:
    try:
        answer = await ask({"mode": "form", "message": message, "requestedSchema": _answer_schema(options)})
    except TimeoutError:
        return _deny("the client did not answer the approval request in time")
    except (RpcError, PeerClosed) as error:
        return _deny(f"the client could not show the approval request: {escape_invisible(str(error))[:200]}")
    return _decision(answer, options)


def _answer_schema(options: list[AnswerOption]) -> dict[str, Any]:
    choice = {
        "type": "string",
        "title": "Answer",
        "enum": [option.id for option in options],
        "enumNames": [escape_invisible(option.label) for option in options],
    }
    return {"type": "object", "properties": {"answer": choice}, "required": ["answer"]}


def _decision(answer: Any, options: list[AnswerOption]) -> Decision:
    """Return the decision in a client's answer. Only a named option allows anything."""
    action = answer.get("action") if isinstance(answer, dict) else None
    content = answer.get("content") if isinstance(answer, dict) else None
    if action != "accept" or not isinstance(content, dict):
        return Decision("deny", by="person") if action in ("decline", "cancel") else _deny("the answer is not valid")
    chosen = next((option for option in options if option.id == content.get("answer")), None)
    return decision_of(chosen) if chosen else _deny("the answer is none of the offered ones")


def _deny(reason: str) -> Decision:
    return Decision("deny", by="nobody", reason=reason)


async def request_reply(session: Session, question: Question, ask: AskClient, capabilities: Any) -> None:
    """Pass a question to the client's user and give the reply to the session. If that fails, it is declined."""
    reply = QuestionReply("decline")
    if can_show(capabilities, elicitation_mode(question)) and len(question.text) <= MAX_MESSAGE:
        try:
            reply = elicitation_reply(await ask(elicitation_params(question)))
        except (RpcError, PeerClosed, TimeoutError):
            reply = QuestionReply("decline")
    session.answer(question.id, reply)
