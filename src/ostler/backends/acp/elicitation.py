"""Questions an agent puts to the person: as our question, or answered from what was said before."""

from collections.abc import Mapping
from typing import Any

from ostler.vocabulary.permission import Question
from ostler.wire.acp_calls import Elicitation


def question(asked: Elicitation, agent: str) -> Question:
    """The agent's question in our words; an address is told, and never opened by us."""
    schema: dict[str, object] | None = asked.requested_schema
    return Question("", asked.message, schema, asked.url or "", agent)


def answered(asked: Elicitation, answers: Mapping[str, str]) -> dict[str, Any] | None:
    """The form filled in from answers given before; None when something it needs is not among them."""
    schema = asked.requested_schema
    if not answers or schema is None or asked.mode == "url":
        return None
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    if any(name not in answers for name in (required if isinstance(required, list) else properties)):
        return None
    return {name: _typed(answers[name], kind) for name, kind in properties.items() if name in answers}


def _typed(text: str, kind: Any) -> Any:
    wanted = kind.get("type") if isinstance(kind, dict) else "string"
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
