"""Questions an agent puts to the person: as our question, or answered from what was said before."""

from collections.abc import Mapping
from typing import Any

from ostler.core.permission import Question
from ostler.wire.acp_requests import CreateElicitationRequest


def make_question(request: CreateElicitationRequest, agent: str) -> Question:
    """The agent's question in our words; an address is told, and never opened by us."""
    schema: dict[str, object] | None = request.requested_schema
    return Question("", request.message, schema, request.url or "", agent)


def fill_form(request: CreateElicitationRequest, answers: Mapping[str, str]) -> dict[str, Any] | None:
    """The form filled in from answers given before; None when something it needs is not among them."""
    schema = request.requested_schema
    if not answers or schema is None or request.mode == "url":
        return None
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    if any(name not in answers for name in (required if isinstance(required, list) else properties)):
        return None
    return {name: _convert(answers[name], kind) for name, kind in properties.items() if name in answers}


def _convert(text: str, schema: Any) -> Any:
    wanted = schema.get("type") if isinstance(schema, dict) else "string"
    try:
        if wanted == "integer":
            return int(text)
        if wanted == "number":
            return float(text)
    except ValueError:
        return text
    if wanted == "boolean":
        return text.lower() in ("true", "yes", "1")
    return text.split(",") if wanted == "array" else text
