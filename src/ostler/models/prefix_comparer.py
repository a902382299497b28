"""Compares each request with those before it, and names the first byte that kept a server's cache from serving it."""

import re
from typing import Any

import msgspec

from ostler.models.loose_json import read_json, write_json

_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'
# How long a reply may get is no part of what is read, wherever a server wants to have it.
_TOKEN_LIMIT = re.compile(rb'"max_(?:completion_)?tokens":\d+,')
_MAX_REMEMBERED = 8
_EXCERPT_LENGTH = 40


class _SentRequest(msgspec.Struct, frozen=True):
    number: int
    body: bytes


class PrefixComparer:
    """One for a client. A cache serves what a request has in common with an earlier one, from its first byte on."""

    def __init__(self) -> None:
        self._sent_requests: list[_SentRequest] = []
        self._count = 0

    def compare(self, body: bytes) -> str:
        """A line on a request that is about to be sent.

        Neither the marks that tell Anthropic where to cut count, nor the longest reply that is wanted.
        """
        self._count += 1
        now = _SentRequest(self._count, _TOKEN_LIMIT.sub(b"", body.replace(_CACHE_MARK, b""), count=1))
        nearest = max(
            self._sent_requests, key=lambda sent: (_common_length(sent.body, now.body), sent.number), default=None
        )
        self._sent_requests = [*self._sent_requests, now][-_MAX_REMEMBERED:]
        told = f"prefix of request {now.number} ({len(now.body):,} bytes)"
        if nearest is None:
            return f"{told}: the first of its kind, nothing to begin with"
        shared, whole = _common_length(nearest.body, now.body), len(nearest.body.rstrip(b"]}"))
        if shared >= whole:
            return f"{told}: all {whole:,} bytes of request {nearest.number}"
        kept = f"{shared:,} of the {whole:,} bytes of request {nearest.number}"
        return f"{told}: broken after {kept}, {_describe_difference(nearest, now)}"


def _common_length(one: bytes, other: bytes) -> int:
    """How many bytes they have in common at their beginning, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _describe_difference(previous: _SentRequest, current: _SentRequest) -> str:
    at = _common_length(previous.body, current.body)
    return f"in {_json_path(current.body, at)}: {_excerpt(previous.body, at)} became {_excerpt(current.body, at)}"


def _excerpt(body: bytes, offset: int) -> str:
    return repr(body[offset : offset + _EXCERPT_LENGTH].decode("utf-8", "replace"))


def _json_path(body: bytes, offset: int) -> str:
    """The part of a request that a byte belongs to, such as `messages[3].content`; bodies are written as we write."""
    path, value, begin = "", read_json(body), 0
    while True:
        inner = _member_at(value, offset - begin)
        if inner is None:
            return path.removeprefix(".") or "the request"
        step, value, skipped = inner
        path, begin = path + step, begin + skipped


def _member_at(value: Any, offset: int) -> tuple[str, Any, int] | None:
    """The member of an object or a list that the byte stands in, and where that member's value begins."""
    if isinstance(value, dict):
        members = [(f".{key}", len(write_json(key)) + 1, inner) for key, inner in value.items()]
    elif isinstance(value, list):
        members = [(f"[{number}]", 0, inner) for number, inner in enumerate(value)]
    else:
        return None
    begin = 1
    for step, name, inner in members:
        end = begin + name + len(write_json(inner))
        if begin <= offset < end:
            return step, inner, begin + name
        begin = end + 1
    return None
