"""A recorded conversation: who said which frame, also where the log does not say so."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from ostler.core.errors import UsageError
from ostler.wire.acp_validator import AcpSide, is_valid_result, methods_of
from ostler.wire.jsonrpc_lines import InvalidJsonLine, decode

_SENDERS: dict[str, AcpSide] = {"->": "client", "<-": "agent", "out": "client", "in": "agent"}


class RecordedFrame(msgspec.Struct, frozen=True):
    """One frame of a log."""

    sender: AcpSide
    frame: dict[str, Any]


def read_recording(name: str) -> Iterator[RecordedFrame]:
    """The frames of a log: those of `-o jsonl`, or of a recorder that writes `{"dir": "->", "frame": …}`.

    `-` is standard input, whose frames are told as they come.
    """
    speakers = _SenderResolver()
    for number, line in enumerate(_read_lines(name), 1):
        if not line.strip():
            continue
        try:
            entry = decode(line)
        except InvalidJsonLine:
            raise UsageError(f"line {number} of {name} is no JSON") from None
        if not isinstance(entry, dict):
            raise UsageError(f"line {number} of {name} is no frame")
        said = _parse_entry(entry, speakers)
        if said:
            yield said


def _read_lines(name: str) -> Iterator[bytes]:
    try:
        if name != "-":
            yield from Path(name).read_bytes().splitlines()
        elif sys.stdin is not None:
            yield from sys.stdin.buffer
    except OSError as error:
        raise UsageError(f"the log {name} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _parse_entry(entry: dict[str, Any], resolver: "_SenderResolver") -> RecordedFrame | None:
    frame = entry.get("frame")
    if isinstance(frame, dict) and entry.get("dir") in _SENDERS:
        return RecordedFrame(_SENDERS[entry["dir"]], frame)
    if str(entry.get("method", "")).startswith("client/"):
        return None
    return RecordedFrame(resolver.resolve(entry), entry)


class _SenderResolver:
    """Tells by its method who sent a frame, and an answer by the question it fits."""

    def __init__(self) -> None:
        self._requests: dict[AcpSide, dict[Any, str]] = {"client": {}, "agent": {}}

    def resolve(self, frame: dict[str, Any]) -> AcpSide:
        method = frame.get("method")
        if isinstance(method, str):
            speaker: AcpSide = "client" if method in methods_of("agent") else "agent"
            if "id" in frame:
                self._requests[speaker][str(frame["id"])] = method
            return speaker
        return self._sender_of_response(frame)

    def _sender_of_response(self, frame: dict[str, Any]) -> AcpSide:
        number = str(frame.get("id"))
        open_here: list[AcpSide] = [who for who in get_args(AcpSide) if number in self._requests[who]]
        fitting = [
            who
            for who in open_here
            if is_valid_result(_other_side(who), self._requests[who][number], frame.get("result"))
        ]
        asker: AcpSide = (fitting or open_here or ["client"])[0]
        self._requests[asker].pop(number, None)
        return _other_side(asker)


def _other_side(sender: AcpSide) -> AcpSide:
    return "agent" if sender == "client" else "client"
