"""Encodes the head of an HTTP/1.1 request and rejects forbidden characters."""

from collections.abc import Sequence

from ostler.text.lazy_regex import lazy_regex

_TOKEN = r"[-!#$%&'*+.^_`|~0-9a-zA-Z]+"
_LINE = lazy_regex(rf"{_TOKEN} [\x21-\x7e]+ HTTP/1\.1")
# As in RFC 9110, but only ASCII: servers disagree on the meaning of other bytes.
_FIELD = lazy_regex(rf"{_TOKEN}: (?:[\x21-\x7e]+(?:[ \t]+[\x21-\x7e]+)*)?")


def request_head(method: str, target: str, headers: Sequence[tuple[str, str]]) -> bytes:
    """Return the head, up to the empty line. Raises `ValueError`, without the value, if a character is forbidden."""
    line, fields = f"{method} {target} HTTP/1.1", [f"{name}: {value}" for name, value in headers]
    if not _LINE.fullmatch(line) or not all(map(_FIELD.fullmatch, fields)):
        raise ValueError("a character that HTTP forbids")
    return "\r\n".join((line, *fields, "", "")).encode("ascii")
