"""Redacts secrets from exported records, using field names as a hint."""

import json
from collections.abc import Sequence
from typing import Any

from ostler.text.redact import DEFAULT_KEYS, REDACTION_MARKER, Redactor
from ostler.text.secret_names import SecretNames

# Identifiers and opaque values; redacting them would break the export.
NOT_REDACTED = frozenset(("type", "id", "call_id", "turn_id", "message_id", "ask_id", "seal", "mime"))


class RecordRedactor:
    """Redacts texts and JSON values; without a redactor it returns everything unchanged."""

    def __init__(self, redactor: Redactor | None, keys: Sequence[str] = DEFAULT_KEYS) -> None:
        self._redactor = redactor
        self._names = SecretNames(keys)

    def redact_text(self, text: str) -> str:
        return self._redactor.redact(text) if self._redactor else text

    def redact_tree(self, value: Any, name: str = "") -> Any:
        if self._redactor is None or name in NOT_REDACTED:
            return value
        match value:
            case str():
                return self._redact_value(value, name)
            case dict() if value.get("type") == "image":
                return value
            case dict():
                return {key: self.redact_tree(item, key) for key, item in value.items()}
            case list():
                return [self.redact_tree(item, name) for item in value]
            case _:
                return value

    def _redact_value(self, value: str, name: str) -> str:
        redacted = self.redact_text(value)
        if redacted != value or self._names.grade(name) == "no":
            return redacted
        return (
            REDACTION_MARKER
            if REDACTION_MARKER in self.redact_text(json.dumps({name: value}, ensure_ascii=False))
            else value
        )
