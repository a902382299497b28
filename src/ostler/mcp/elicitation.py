"""Answers a server's questions to the user (elicitation) with the session's questions."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from ostler.core.permission import Question, QuestionReply
from ostler.text.sanitise import sanitise
from ostler.wire.mcp import ELICIT

MAX_QUESTIONS = 10
MAX_TEXT = 4000
MAX_LABEL = 300
MAX_FORM_BYTES = 16 * 1024
MAX_DEPTH = 10
_LABELS = ("title", "description")

Ask = Callable[[Question], Awaitable[QuestionReply]]


async def answer_requests(requests: Any, ask: Ask) -> dict[str, Any]:
    """Answer the input requests of a result, in order; requests that are not questions are left out."""
    answers: dict[str, Any] = {}
    for key, request in requests.items() if isinstance(requests, dict) else ():
        if isinstance(request, dict) and request.get("method") == ELICIT and isinstance(request.get("params"), dict):
            answers[key] = await answer_request(request["params"], ask)
    return answers


def _limited_form(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of a form with shortened labels; None if it is too large to show."""
    limited: dict[str, Any] = _shorten_labels(schema, 0)
    return limited if len(msgspec.json.encode(limited)) <= MAX_FORM_BYTES else None


def _shorten_labels(value: Any, depth: int) -> Any:
    if isinstance(value, list) and depth < MAX_DEPTH:
        return [_shorten_labels(inner, depth + 1) for inner in value]
    if not isinstance(value, dict) or depth >= MAX_DEPTH:
        return value
    return {
        key: inner[:MAX_LABEL] if key in _LABELS and isinstance(inner, str) else _shorten_labels(inner, depth + 1)
        for key, inner in value.items()
    }


async def answer_urls(data: Any, ask: Ask) -> bool:
    """Ask the user to open the URLs in the data of an error. Return whether all were accepted."""
    requests = data.get("elicitations") if isinstance(data, dict) else None
    requests = requests if isinstance(requests, list) else []
    urls = [request for request in requests if isinstance(request, dict) and isinstance(request.get("url"), str)]
    for request in urls[:MAX_QUESTIONS]:
        if (await answer_request(request, ask))["action"] != "accept":
            return False
    return bool(urls)


async def answer_request(params: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
    """Ask the user a server's question and return the answer in the protocol's form."""
    message, schema, url = params.get("message"), params.get("requestedSchema"), params.get("url")
    question = Question(
        "",
        sanitise(message)[:MAX_TEXT] if isinstance(message, str) else "",
        _limited_form(schema) if isinstance(schema, dict) and not isinstance(url, str) else None,
        url if isinstance(url, str) and url.startswith(("https://", "http://")) else "",
    )
    if question.schema is None and not question.url:
        return {"action": "decline"}
    reply = await ask(question)
    if reply.action != "accept" or question.url:
        return {"action": reply.action}
    return {"action": "accept", "content": reply.content or {}}
