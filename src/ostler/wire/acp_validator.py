"""Watches a conversation in ACP and says which frames are not as the protocol has them."""

from functools import cache
from typing import Any, Literal

from ostler.wire.acp_schema import Schema, definitions, find_problems
from ostler.wire.jsonrpc_lines import InvalidJsonLine, decode

AcpSide = Literal["client", "agent"]


class AcpValidator:
    """Holds frames to the schema; it remembers what was asked, so that answers are held to their method."""

    def __init__(self) -> None:
        self._open_requests: dict[tuple[AcpSide, Any], str] = {}

    def check_line(self, sender: AcpSide, line: bytes) -> list[str]:
        """What is wrong with a line that one side sent, a sentence each."""
        try:
            frame = decode(line)
        except InvalidJsonLine:
            return ["this is no JSON"]
        if not isinstance(frame, dict):
            return ["a frame is a JSON object"]
        found = [] if frame.get("jsonrpc") == "2.0" else ['"jsonrpc" is not "2.0"']
        method = frame.get("method")
        if isinstance(method, str):
            return found + self._check_message(sender, method, frame)
        if "id" in frame:
            return found + self._check_response(sender, frame)
        return [*found, "a frame has a method, or the id of a request"]

    def _check_message(self, sender: AcpSide, method: str, frame: dict[str, Any]) -> list[str]:
        listener: AcpSide = "client" if sender == "agent" else "agent"
        if "id" in frame:
            if not isinstance(frame["id"], (int, str)):
                return [f"{method}: the id is no number and no text"]
            self._open_requests[listener, frame["id"]] = method
        if method.startswith("_"):
            return []
        wanted = _message_schemas().get((listener, method)) or _message_schemas().get(("protocol", method))
        if wanted is None:
            return [f"{method} is no method that {'a client' if listener == 'client' else 'an agent'} has"]
        return [f"{method}: {told}" for told in find_problems(wanted, frame.get("params", {}))]

    def _check_response(self, sender: AcpSide, frame: dict[str, Any]) -> list[str]:
        number = frame["id"] if isinstance(frame["id"], (int, str)) else None
        method = self._open_requests.pop((sender, number), None)
        if "error" in frame:
            told = find_problems(definitions()["Error"], frame["error"])
            return [f"the error that answers {method or 'nothing'}: {what}" for what in told]
        if "result" not in frame:
            return [f"the answer to {method} has no result and no error"]
        if method is None:
            return [f"nothing was asked with the id {frame['id']!r}"]
        wanted = _response_schemas().get((sender, method))
        told = find_problems(wanted, frame["result"]) if wanted else []
        return [f"the answer to {method}: {what}" for what in told]


@cache
def _message_schemas() -> dict[tuple[str, str], Schema]:
    return _schemas_by_method(responses=False)


@cache
def _response_schemas() -> dict[tuple[str, str], Schema]:
    return _schemas_by_method(responses=True)


def _schemas_by_method(*, responses: bool) -> dict[tuple[str, str], Schema]:
    return {
        (schema["x-side"], schema["x-method"]): schema
        for name, schema in definitions().items()
        if "x-method" in schema and name.endswith("Response") == responses
    }


def methods_of(side: AcpSide) -> frozenset[str]:
    """What one side can be asked for or told."""
    return frozenset(method for listener, method in _message_schemas() if listener == side)


def is_valid_result(sender: AcpSide, method: str, result: Any) -> bool:
    """Whether something could be that side's answer to a method."""
    wanted = _response_schemas().get((sender, method))
    return wanted is None or not find_problems(wanted, result)
