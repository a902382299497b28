"""Known secrets taken out of text: by their very values, wherever they stand, and nothing else."""

from collections.abc import Iterable

MASK_MARKER = "***WITHHELD-BY-OSTLER***"


class SecretMasker:
    """Replaces values by the mark; one object serves any number of texts."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values if value.strip() for form in _encoded_forms(value.strip())}
        self._forms = sorted(forms, key=len, reverse=True)
        self._json_forms = {_json_escape(form, ascii_only=False).encode("utf-8", "replace") for form in forms}

    def occurs_in(self, data: bytes) -> bool:
        """Whether JSON, as it is encoded, has one of them in a text."""
        return any(form in data for form in self._json_forms)

    def mask(self, text: str) -> str:
        """The text without them; a second time changes nothing."""
        for form in self._forms:
            text = text.replace(form, MASK_MARKER)
        return text

    def __bool__(self) -> bool:
        return bool(self._forms)


def _encoded_forms(value: str) -> set[str]:
    """The value as it is, and as JSON and addresses write it."""
    from urllib.parse import quote, quote_plus

    in_json = {_json_escape(value, ascii_only=True), _json_escape(value, ascii_only=False)}
    return {value, *in_json, quote(value, safe=""), quote_plus(value)}


def _json_escape(text: str, *, ascii_only: bool) -> str:
    import json  # only where a secret is known

    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]
