"""The head of an HTTP/1.1 request as bytes; one with a character that HTTP forbids is refused."""

from collections.abc import Sequence

from ostler.text.lazy_regex import lazy_regex

_TOKEN = r"[-!#$%&'*+.^_`|~0-9a-zA-Z]+"
_LINE = lazy_regex(rf"{_TOKEN} [\x21-\x7e]+ HTTP/1\.1")
# As RFC 9110 has it, without the bytes beyond ASCII: no server agrees with another on what they mean.
_FIELD = lazy_regex(rf"{_TOKEN}: (?:[\x21-\x7e]+(?:[ \t]+[\x21-\x7e]+)*)?")


def request_head(method: str, target: str, headers: Sequence[tuple[str, str]]) -> bytes:
    """Up to the empty line; a `ValueError`, which shows nothing of it, where it cannot be sent."""
    line, fields = f"{method} {target} HTTP/1.1", [f"{name}: {value}" for name, value in headers]
    if not _LINE.fullmatch(line) or not all(map(_FIELD.fullmatch, fields)):
        raise ValueError("a character that HTTP forbids")
    return "\r\n".join((line, *fields, "", "")).encode("ascii")
