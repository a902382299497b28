"""Questions to the user as `elicitation/create`, which ACP and MCP share."""

from typing import Any, Literal, cast

from ostler.core.permission import Question, QuestionReply
from ostler.text.sanitise import escape_invisible

_ANY_TEXT = {"type": "object", "properties": {"answer": {"type": "string"}}}


def elicitation_mode(question: Question) -> Literal["form", "url"]:
    return "url" if question.url else "form"


def elicitation_params(question: Question) -> dict[str, Any]:
    """Return the parameters for a form, or for a URL that the client opens only if its user agrees."""
    text = f"{question.asked_by}: {question.text}" if question.asked_by else question.text
    params = {"mode": elicitation_mode(question), "message": escape_invisible(text)}
    if question.url:
        return {**params, "url": question.url, "elicitationId": question.id}
    return {**params, "requestedSchema": question.schema or _ANY_TEXT}


def elicitation_reply(response: Any) -> QuestionReply:
    """Return the reply in a client's response. An invalid response means declined."""
    action = response.get("action") if isinstance(response, dict) else None
    if action not in ("accept", "decline", "cancel"):
        return QuestionReply("decline")
    content = response.get("content")
    return QuestionReply(
        cast(Literal["accept", "decline", "cancel"], action), content if isinstance(content, dict) else None
    )
