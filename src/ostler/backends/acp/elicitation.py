"""Converts an agent's elicitation into a question, or answers it from preset answers."""

from collections.abc import Mapping
from typing import Any

from ostler.core.permission import Question
from ostler.wire.acp_requests import CreateElicitationRequest


def make_question(request: CreateElicitationRequest, agent: str) -> Question:
    """Convert an elicitation into a question; a URL is shown to the user and never opened."""
    schema: dict[str, object] | None = request.requested_schema
    return Question("", request.message, schema, request.url or "", agent)


def fill_form(request: CreateElicitationRequest, answers: Mapping[str, str]) -> dict[str, Any] | None:
    """Fill in the form from preset answers. Return None if a required answer is missing."""
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
    type_name = schema.get("type") if isinstance(schema, dict) else "string"
    try:
        if type_name == "integer":
            return int(text)
        if type_name == "number":
            return float(text)
    except ValueError:
        return text
    if type_name == "boolean":
        return text.lower() in ("true", "yes", "1")
    return text.split(",") if type_name == "array" else text
