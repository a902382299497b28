"""A string whose repr never shows its value."""

import re

MASK = "***"
_REFERENCE = r"\{(?:env|file):[^{}]+\}"


class Secret:
    """Wraps a secret so that repr, logs and formatting show a mask. `reveal` returns the value."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def display_text(self) -> str:
        """Return the text if it is only a reference (`{env:NAME}`), else the mask."""
        return self._text if re.fullmatch(_REFERENCE, self._text) else MASK

    def __repr__(self) -> str:
        return MASK

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Secret cannot be pickled")


def decode_secret(kind: type, value: object) -> Secret:
    """msgspec hook that decodes a string to a `Secret`."""
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise TypeError(f"expected text, not {type(value).__name__}")


def encode_masked(value: object) -> str:
    """msgspec hook that encodes a `Secret` as masked text."""
    if isinstance(value, Secret):
        return value.display_text()
    raise NotImplementedError(f"cannot encode {type(value).__name__}")
