"""A text that must not show itself: keys, header values, environments."""

import re

MASK = "***"
_REFERENCE = r"\{(?:env|file):[^{}]+\}"


class Secret:
    """Wraps a text so that no repr, log line or format prints it; `reveal` gives it to whoever sends it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def display_text(self) -> str:
        """What may be displayed: a reference as it is written, anything else masked."""
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
        raise TypeError("a secret is not to be stored")


def decode_secret(kind: type, value: object) -> Secret:
    """msgspec's hook that makes a Secret of a text."""
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise TypeError(f"expected text, not {type(value).__name__}")


def encode_masked(value: object) -> str:
    """msgspec's hook that writes a Secret down: masked."""
    if isinstance(value, Secret):
        return value.display_text()
    raise NotImplementedError(f"no plain form for {type(value).__name__}")
