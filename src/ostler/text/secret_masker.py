"""Masks known secret values in text by exact match."""

import re
from collections.abc import Iterable

from ostler.text.plain_view import escape_free_view, has_escapes, replace_spans

MASK_MARKER = "***WITHHELD-BY-OSTLER***"
_MAX_OPEN_ESCAPE = 64


class SecretMasker:
    """Replaces known secret values by the marker. Reusable for any number of texts."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values if value.strip() for form in encoded_forms(value.strip())}
        self._forms = sorted(forms, key=len, reverse=True)
        self._json_forms = {_json_escape(form, ascii_only=False).encode("utf-8", "replace") for form in forms}

    def occurs_in(self, data: bytes) -> bool:
        """Return whether encoded JSON contains one of the secrets, or may contain one between terminal escapes."""
        return b"\\u001b" in data or any(form in data for form in self._json_forms)

    def mask(self, text: str) -> str:
        """Return the text with every known secret replaced by the marker. Idempotent."""
        for form in self._forms:
            text = text.replace(form, MASK_MARKER)
        return self._mask_between_escapes(text) if has_escapes(text) else text

    def partial_secret_length(self, text: str) -> int:
        """Return how many characters at the end of the text may be the start of a secret."""
        complete = text[: len(text) - len(_open_escape(text))]
        view = escape_free_view(complete)
        for start in range(max(0, len(view.text) - len(self._forms[0]) + 1), len(view.text)):
            if any(len(form) > len(view.text) - start and form.startswith(view.text[start:]) for form in self._forms):
                return len(text) - view.original_span((start, start + 1))[0]
        return 0

    def _mask_between_escapes(self, text: str) -> str:
        """Mask the secrets that terminal escapes split, such as the colours of `grep`."""
        for form in self._forms:
            view = escape_free_view(text)
            spans = [view.original_span(match.span()) for match in re.finditer(re.escape(form), view.text)]
            text = replace_spans(text, spans, MASK_MARKER)
        return text

    def __bool__(self) -> bool:
        return bool(self._forms)


def _open_escape(text: str) -> str:
    """Return the incomplete terminal escape at the end of the text."""
    start = text.rfind("\x1b", -_MAX_OPEN_ESCAPE)
    return text[start:] if start >= 0 and re.fullmatch(r"\x1b(?:\[[0-9;:]*)?", text[start:]) else ""


def encoded_forms(value: str) -> set[str]:
    """Return the value unchanged, and encoded for JSON and URLs."""
    from urllib.parse import quote, quote_plus

    in_json = {_json_escape(value, ascii_only=True), _json_escape(value, ascii_only=False)}
    return {value, *in_json, quote(value, safe=""), quote_plus(value)}


def _json_escape(text: str, *, ascii_only: bool) -> str:
    import json  # needed only if there are secrets

    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]
