"""Reads a recorded ACP connection and works out which side sent each frame."""

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
    """A frame of a log with its sender."""

    sender: AcpSide
    frame: dict[str, Any]


def read_recording(name: str) -> Iterator[RecordedFrame]:
    """Yield the frames of a log: output of `-o jsonl`, or lines such as `{"dir": "->", "frame": …}`.

    `-` reads standard input as it arrives. Raises `UsageError` if a line is not a frame.
    """
    resolver = _SenderResolver()
    for number, line in enumerate(_read_lines(name), 1):
        if not line.strip():
            continue
        try:
            entry = decode(line)
        except InvalidJsonLine:
            raise UsageError(f"line {number} of {name} is not valid JSON") from None
        if not isinstance(entry, dict):
            raise UsageError(f"line {number} of {name} is not a frame")
        recorded = _parse_entry(entry, resolver)
        if recorded:
            yield recorded


def _read_lines(name: str) -> Iterator[bytes]:
    try:
        if name != "-":
            yield from Path(name).read_bytes().splitlines()
        elif sys.stdin is not None:
            yield from sys.stdin.buffer
    except OSError as error:
        raise UsageError(f"cannot read the log {name}: {(error.strerror or str(error)).lower()}") from None


def _parse_entry(entry: dict[str, Any], resolver: "_SenderResolver") -> RecordedFrame | None:
    frame = entry.get("frame")
    if isinstance(frame, dict) and entry.get("dir") in _SENDERS:
        return RecordedFrame(_SENDERS[entry["dir"]], frame)
    if str(entry.get("method", "")).startswith("client/"):
        return None
    return RecordedFrame(resolver.resolve(entry), entry)


class _SenderResolver:
    """Finds the sender of a request by its method, and of a response by the request that it matches."""

    def __init__(self) -> None:
        self._requests: dict[AcpSide, dict[Any, str]] = {"client": {}, "agent": {}}

    def resolve(self, frame: dict[str, Any]) -> AcpSide:
        method = frame.get("method")
        if isinstance(method, str):
            sender: AcpSide = "client" if method in methods_of("agent") else "agent"
            if "id" in frame:
                self._requests[sender][str(frame["id"])] = method
            return sender
        return self._sender_of_response(frame)

    def _sender_of_response(self, frame: dict[str, Any]) -> AcpSide:
        request_id = str(frame.get("id"))
        waiting: list[AcpSide] = [side for side in get_args(AcpSide) if request_id in self._requests[side]]
        matching = [
            side
            for side in waiting
            if is_valid_result(_other_side(side), self._requests[side][request_id], frame.get("result"))
        ]
        requester: AcpSide = (matching or waiting or ["client"])[0]
        self._requests[requester].pop(request_id, None)
        return _other_side(requester)


def _other_side(sender: AcpSide) -> AcpSide:
    return "agent" if sender == "client" else "client"
