"""Secrets taken out of a record's values, where a name may tell what a value alone does not."""

import json
from collections.abc import Sequence
from typing import Any

from ostler.text.redact import DEFAULT_KEYS, REDACTION_MARKER, Redactor
from ostler.text.secret_names import SecretNames

# They tie records together or are no words at all.
NOT_REDACTED = frozenset(("type", "id", "call_id", "turn_id", "message_id", "ask_id", "seal", "mime"))


class RecordRedactor:
    """`text` for words, `tree` for what JSON is made of; off, it passes everything."""

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
        clean = self.redact_text(value)
        if clean != value or self._names.grade(name) == "no":
            return clean
        return (
            REDACTION_MARKER
            if REDACTION_MARKER in self.redact_text(json.dumps({name: value}, ensure_ascii=False))
            else value
        )
