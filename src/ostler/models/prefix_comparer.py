"""Compares each request with earlier ones and names the first byte that broke the prompt cache."""

import re
from typing import Any

import msgspec

from ostler.models.loose_json import read_json, write_json

_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'
# The reply limit is not part of the prompt, so a change of it does not affect the cache.
_TOKEN_LIMIT = re.compile(rb'"max_(?:completion_)?tokens":\d+,')
_MAX_REMEMBERED = 8
_EXCERPT_LENGTH = 40


class _SentRequest(msgspec.Struct, frozen=True):
    number: int
    body: bytes


class PrefixComparer:
    """Compares the requests of one client. A server's cache covers the prefix shared with an earlier request."""

    def __init__(self) -> None:
        self._sent_requests: list[_SentRequest] = []
        self._count = 0

    def compare(self, body: bytes) -> str:
        """Return a line about the prefix that a new request shares with an earlier one.

        Anthropic's cache marks and the reply limit are ignored.
        """
        self._count += 1
        current = _SentRequest(self._count, _TOKEN_LIMIT.sub(b"", body.replace(_CACHE_MARK, b""), count=1))
        nearest = max(
            self._sent_requests, key=lambda sent: (_common_length(sent.body, current.body), sent.number), default=None
        )
        self._sent_requests = [*self._sent_requests, current][-_MAX_REMEMBERED:]
        title = f"prefix of request {current.number} ({len(current.body):,} bytes)"
        if nearest is None:
            return f"{title}: the first request, no earlier one to compare"
        shared, expected = _common_length(nearest.body, current.body), len(nearest.body.rstrip(b"]}"))
        if shared >= expected:
            return f"{title}: all {expected:,} bytes of request {nearest.number}"
        shared_part = f"{shared:,} of the {expected:,} bytes of request {nearest.number}"
        return f"{title}: broken after {shared_part}, {_describe_difference(nearest, current)}"


def _common_length(first: bytes, second: bytes) -> int:
    """Return the length of the common prefix, by bisection."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _describe_difference(previous: _SentRequest, current: _SentRequest) -> str:
    offset = _common_length(previous.body, current.body)
    old, new = _excerpt(previous.body, offset), _excerpt(current.body, offset)
    return f"in {_json_path(current.body, offset)}: {old} became {new}"


def _excerpt(body: bytes, offset: int) -> str:
    return repr(body[offset : offset + _EXCERPT_LENGTH].decode("utf-8", "replace"))


def _json_path(body: bytes, offset: int) -> str:
    """Return the part of the request at `offset`, such as `messages[3].content`. Only for bodies of `write_json`."""
    path, value, start = "", read_json(body), 0
    while True:
        member = _member_at(value, offset - start)
        if member is None:
            return path.removeprefix(".") or "the request"
        step, value, skipped = member
        path, start = path + step, start + skipped


def _member_at(value: Any, offset: int) -> tuple[str, Any, int] | None:
    """Return step, value and value offset of the member that contains `offset`, or None."""
    if isinstance(value, dict):
        members = [(f".{key}", len(write_json(key)) + 1, inner) for key, inner in value.items()]
    elif isinstance(value, list):
        members = [(f"[{number}]", 0, inner) for number, inner in enumerate(value)]
    else:
        return None
    start = 1
    for step, name, inner in members:
        end = start + name + len(write_json(inner))
        if start <= offset < end:
            return step, inner, start + name
        start = end + 1
    return None
