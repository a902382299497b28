"""Parses JSON that was cut off before its end, as some proxies do with stream events."""

import json
import re
from typing import Any

from ostler.models.loose_json import LooseJsonError

_STRUCTURAL_CHAR = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_PARTIAL_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")  # after pairs, which are complete
_PARTIAL_WORD = re.compile(r"[\w.+-]+\Z")
_CLOSERS = {"{": "}", "[": "]"}
_MAX_LENGTH = 1_000_000
_MAX_DEPTH = 100


def parse_truncated(data: bytes) -> Any:
    """Return the available part of a value whose end is missing. Raises `LooseJsonError` if it is broken otherwise."""
    text = data.decode("utf-8", "ignore")
    if len(text) > _MAX_LENGTH:
        raise LooseJsonError("too long to be repaired")
    closers, in_string = _missing_closers(text)
    if not closers:
        raise LooseJsonError("invalid JSON")
    for completion in _completions(text, in_string):
        try:
            return json.loads(completion + closers, strict=False)
        except (ValueError, RecursionError):
            continue
    raise LooseJsonError("invalid JSON")


def _missing_closers(text: str) -> tuple[str, bool]:
    """Return the brackets missing at the end, and whether the text ends inside a string."""
    closers: list[str] = []
    index = 0
    while match := _STRUCTURAL_CHAR.search(text, index):
        index = match.end()
        if match[0] == '"':
            index = _string_end(text, index)
            if index < 0:
                return "".join(reversed(closers)), True
        elif match[0] in _CLOSERS and len(closers) < _MAX_DEPTH:
            closers.append(_CLOSERS[match[0]])
        elif not closers or closers.pop() != match[0]:
            return "", False
    return "".join(reversed(closers)), False


def _string_end(text: str, start: int) -> int:
    while match := _IN_STRING.search(text, start):
        if match[0] == '"':
            return match.end()
        start = match.end() + 1
    return -1


def _completions(text: str, in_string: bool) -> list[str]:
    """Return candidates for the innermost incomplete part: as a value, as a key without one, or removed."""
    if in_string:
        text = _PARTIAL_ESCAPE.sub(r"\1", text) + '"'
        return [text, f"{text}:null", text[: text.rfind(",")] if "," in text else text]
    text = _PARTIAL_WORD.sub("null", text.rstrip())
    return [text, f"{text}null", f"{text}:null", text.rstrip(",")]
