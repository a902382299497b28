"""Validates the frames of an ACP connection and the pairing of requests and answers."""

from functools import cache
from typing import Any, Literal

from ostler.wire.acp_schema import Schema, definitions, find_problems
from ostler.wire.jsonrpc_lines import InvalidJsonLine, decode

AcpSide = Literal["client", "agent"]


class AcpValidator:
    """Validates frames against the schema; it tracks requests so that answers are checked against their method."""

    def __init__(self) -> None:
        self._open_requests: dict[tuple[AcpSide, Any], str] = {}

    def check_line(self, sender: AcpSide, line: bytes) -> list[str]:
        """Return what is wrong with a line that `sender` sent, one sentence per problem."""
        try:
            frame = decode(line)
        except InvalidJsonLine:
            return ["not valid JSON"]
        if not isinstance(frame, dict):
            return ["a frame must be a JSON object"]
        problems = [] if frame.get("jsonrpc") == "2.0" else ['"jsonrpc" is not "2.0"']
        method = frame.get("method")
        if isinstance(method, str):
            return problems + self._check_message(sender, method, frame)
        if "id" in frame:
            return problems + self._check_response(sender, frame)
        return [*problems, "a frame must have a method or a request id"]

    def _check_message(self, sender: AcpSide, method: str, frame: dict[str, Any]) -> list[str]:
        receiver: AcpSide = "client" if sender == "agent" else "agent"
        if "id" in frame:
            if not isinstance(frame["id"], (int, str)):
                return [f"{method}: the id must be an integer or a string"]
            self._open_requests[receiver, frame["id"]] = method
        if method.startswith("_"):
            return []
        schema = _message_schemas().get((receiver, method)) or _message_schemas().get(("protocol", method))
        if schema is None:
            return [f"{method} is not a method of {'a client' if receiver == 'client' else 'an agent'}"]
        return [f"{method}: {problem}" for problem in find_problems(schema, frame.get("params", {}))]

    def _check_response(self, sender: AcpSide, frame: dict[str, Any]) -> list[str]:
        request_id = frame["id"] if isinstance(frame["id"], (int, str)) else None
        method = self._open_requests.pop((sender, request_id), None)
        if "error" in frame:
            problems = find_problems(definitions()["Error"], frame["error"])
            return [f"the error that answers {method or 'nothing'}: {problem}" for problem in problems]
        if "result" not in frame:
            return [f"the answer to {method} has no result and no error"]
        if method is None:
            return [f"no open request has the id {frame['id']!r}"]
        schema = _response_schemas().get((sender, method))
        problems = find_problems(schema, frame["result"]) if schema else []
        return [f"the answer to {method}: {problem}" for problem in problems]


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
    """Return the requests and notifications that one side can receive."""
    return frozenset(method for receiver, method in _message_schemas() if receiver == side)


def is_valid_result(sender: AcpSide, method: str, result: Any) -> bool:
    """Return whether `result` can be that side's answer to a method; unknown methods accept anything."""
    schema = _response_schemas().get((sender, method))
    return schema is None or not find_problems(schema, result)
