"""Watches a conversation in ACP and says which frames are not as the protocol has them."""

from functools import cache
from typing import Any, Literal

from ostler.wire.acp_schema import Schema, definitions, problems
from ostler.wire.jsonrpc_lines import NotJson, decode

Speaker = Literal["client", "agent"]


class Checker:
    """Holds frames to the schema; it remembers what was asked, so that answers are held to their method."""

    def __init__(self) -> None:
        self._asked: dict[tuple[Speaker, Any], str] = {}

    def look(self, speaker: Speaker, line: bytes) -> list[str]:
        """What is wrong with a line that one side sent, a sentence each."""
        try:
            frame = decode(line)
        except NotJson:
            return ["this is no JSON"]
        if not isinstance(frame, dict):
            return ["a frame is a JSON object"]
        found = [] if frame.get("jsonrpc") == "2.0" else ['"jsonrpc" is not "2.0"']
        method = frame.get("method")
        if isinstance(method, str):
            return found + self._said(speaker, method, frame)
        if "id" in frame:
            return found + self._answered(speaker, frame)
        return [*found, "a frame has a method, or the id of a request"]

    def _said(self, speaker: Speaker, method: str, frame: dict[str, Any]) -> list[str]:
        listener: Speaker = "client" if speaker == "agent" else "agent"
        if "id" in frame:
            if not isinstance(frame["id"], (int, str)):
                return [f"{method}: the id is no number and no text"]
            self._asked[listener, frame["id"]] = method
        if method.startswith("_"):
            return []
        wanted = _said_as().get((listener, method)) or _said_as().get(("protocol", method))
        if wanted is None:
            return [f"{method} is no method that {'a client' if listener == 'client' else 'an agent'} has"]
        return [f"{method}: {told}" for told in problems(wanted, frame.get("params", {}))]

    def _answered(self, speaker: Speaker, frame: dict[str, Any]) -> list[str]:
        number = frame["id"] if isinstance(frame["id"], (int, str)) else None
        method = self._asked.pop((speaker, number), None)
        if "error" in frame:
            told = problems(definitions()["Error"], frame["error"])
            return [f"the error that answers {method or 'nothing'}: {what}" for what in told]
        if "result" not in frame:
            return [f"the answer to {method} has no result and no error"]
        if method is None:
            return [f"nothing was asked with the id {frame['id']!r}"]
        wanted = _answered_as().get((speaker, method))
        told = problems(wanted, frame["result"]) if wanted else []
        return [f"the answer to {method}: {what}" for what in told]


@cache
def _said_as() -> dict[tuple[str, str], Schema]:
    return _by_method(answers=False)


@cache
def _answered_as() -> dict[tuple[str, str], Schema]:
    return _by_method(answers=True)


def _by_method(*, answers: bool) -> dict[tuple[str, str], Schema]:
    return {
        (schema["x-side"], schema["x-method"]): schema
        for name, schema in definitions().items()
        if "x-method" in schema and name.endswith("Response") == answers
    }


def methods_of(side: Speaker) -> frozenset[str]:
    """What one side can be asked for or told."""
    return frozenset(method for listener, method in _said_as() if listener == side)


def answers_fit(speaker: Speaker, method: str, result: Any) -> bool:
    """Whether something could be that side's answer to a method."""
    wanted = _answered_as().get((speaker, method))
    return wanted is None or not problems(wanted, result)
