"""A recorded conversation: who said which frame, also where the log does not say so."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from ostler.vocabulary.errors import UsageError
from ostler.wire.acp_check import Speaker, answers_fit, methods_of
from ostler.wire.jsonrpc_lines import NotJson, decode

_ARROWS: dict[str, Speaker] = {"->": "client", "<-": "agent", "out": "client", "in": "agent"}


class Said(msgspec.Struct, frozen=True):
    """One frame of a log."""

    speaker: Speaker
    frame: dict[str, Any]


def read_log(name: str) -> Iterator[Said]:
    """The frames of a log: those of `-o jsonl`, or of a recorder that writes `{"dir": "->", "frame": …}`.

    `-` is standard input, whose frames are told as they come.
    """
    speakers = _Speakers()
    for number, line in enumerate(_lines(name), 1):
        if not line.strip():
            continue
        try:
            entry = decode(line)
        except NotJson:
            raise UsageError(f"line {number} of {name} is no JSON") from None
        if not isinstance(entry, dict):
            raise UsageError(f"line {number} of {name} is no frame")
        said = _said(entry, speakers)
        if said:
            yield said


def _lines(name: str) -> Iterator[bytes]:
    try:
        if name != "-":
            yield from Path(name).read_bytes().splitlines()
        elif sys.stdin is not None:
            yield from sys.stdin.buffer
    except OSError as error:
        raise UsageError(f"the log {name} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _said(entry: dict[str, Any], speakers: "_Speakers") -> Said | None:
    frame = entry.get("frame")
    if isinstance(frame, dict) and entry.get("dir") in _ARROWS:
        return Said(_ARROWS[entry["dir"]], frame)
    if str(entry.get("method", "")).startswith("client/"):
        return None
    return Said(speakers.of(entry), entry)


class _Speakers:
    """Tells by its method who sent a frame, and an answer by the question it fits."""

    def __init__(self) -> None:
        self._asked: dict[Speaker, dict[Any, str]] = {"client": {}, "agent": {}}

    def of(self, frame: dict[str, Any]) -> Speaker:
        method = frame.get("method")
        if isinstance(method, str):
            speaker: Speaker = "client" if method in methods_of("agent") else "agent"
            if "id" in frame:
                self._asked[speaker][str(frame["id"])] = method
            return speaker
        return self._answering(frame)

    def _answering(self, frame: dict[str, Any]) -> Speaker:
        number = str(frame.get("id"))
        open_here: list[Speaker] = [who for who in get_args(Speaker) if number in self._asked[who]]
        fitting = [who for who in open_here if answers_fit(_other(who), self._asked[who][number], frame.get("result"))]
        asker: Speaker = (fitting or open_here or ["client"])[0]
        self._asked[asker].pop(number, None)
        return _other(asker)


def _other(speaker: Speaker) -> Speaker:
    return "agent" if speaker == "client" else "client"
