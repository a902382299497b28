"""JSON that was torn off before its end, as some proxies do with the events of a stream: read as far as it goes."""

import json
import re
from typing import Any

from ostler.models.loose_json import LooseJsonError

_STRUCTURAL_CHAR = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_PARTIAL_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_PARTIAL_WORD = re.compile(r"[\w.+-]+\Z")
_CLOSERS = {"{": "}", "[": "]"}
_MAX_LENGTH = 1_000_000
_MAX_DEPTH = 100


def parse_truncated(data: bytes) -> Any:
    """What there is of a value whose end is missing; `NotJson` when it is broken in another way."""
    text = data.decode("utf-8", "ignore")
    if len(text) > _MAX_LENGTH:
        raise LooseJsonError("it is too long to be mended")
    closers, in_string = _missing_closers(text)
    if not closers:
        raise LooseJsonError("it is broken, not torn")
    for begun in _completions(text, in_string):
        try:
            return json.loads(begun + closers, strict=False)
        except (ValueError, RecursionError):
            continue
    raise LooseJsonError("it is broken, not torn")


def _missing_closers(text: str) -> tuple[str, bool]:
    """What would close all that is open where the text ends, and whether that is within a string."""
    open_ones: list[str] = []
    at = 0
    while found := _STRUCTURAL_CHAR.search(text, at):
        at = found.end()
        if found[0] == '"':
            at = _string_end(text, at)
            if at < 0:
                return "".join(reversed(open_ones)), True
        elif found[0] in _CLOSERS and len(open_ones) < _MAX_DEPTH:
            open_ones.append(_CLOSERS[found[0]])
        elif not open_ones or open_ones.pop() != found[0]:
            return "", False
    return "".join(reversed(open_ones)), False


def _string_end(text: str, start: int) -> int:
    while found := _IN_STRING.search(text, start):
        if found[0] == '"':
            return found.end()
        start = found.end() + 1
    return -1


def _completions(text: str, in_string: bool) -> list[str]:
    """Ways to finish the innermost piece: as a value, as a key without one, or not at all."""
    if in_string:
        text = _PARTIAL_ESCAPE.sub("", text) + '"'
        return [text, f"{text}:null", text[: text.rfind(",")] if "," in text else text]
    text = _PARTIAL_WORD.sub("null", text.rstrip())
    return [text, f"{text}null", f"{text}:null", text.rstrip(",")]
