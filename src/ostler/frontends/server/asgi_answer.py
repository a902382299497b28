"""Answers of ASGI middleware: errors as JSON, and what an application has answered so far."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import Message, Scope, Send

_CORS = b"access-control-"
ACCEPTED = 101


async def answer_json(
    scope: "Scope", send: "Send", status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> None:
    """Answer a request. A WebSocket that is not accepted yet gets the same HTTP answer instead of an upgrade."""
    prefix = ""
    if scope["type"] == "websocket":
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": 1008})  # the server answers 403
            return
        prefix = "websocket."
    body = json.dumps(content).encode()
    fields = {"content-type": "application/json", "content-length": str(len(body)), "cache-control": "no-store"}
    pairs = [(name.encode(), value.encode()) for name, value in {**fields, **(headers or {})}.items()]
    await send({"type": f"{prefix}http.response.start", "status": status, "headers": pairs})
    await send({"type": f"{prefix}http.response.body", "body": body})


async def answer_error(
    scope: "Scope", send: "Send", status: int, code: str, text: str, headers: Mapping[str, str] | None = None
) -> None:
    """Answer a request with an error of the server protocol."""
    await answer_json(scope, send, status, {"error": text, "code": code}, headers)


def header_values(scope: "Scope", name: bytes) -> list[str]:
    """Return all values of a header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def client_address(scope: "Scope") -> str:
    """Return the address of the client, or "" if it is not known."""
    client = scope.get("client")
    return str(client[0]) if client else ""


class AnswerInProgress:
    """Passes on what an application sends, without CORS headers, and can end the answer in its place."""

    def __init__(self, scope: "Scope", send: "Send") -> None:
        self.status = 0  # of the answer; 101 for an accepted WebSocket, and then the code with which it was closed here
        self._scope = scope
        self._send = send
        self._is_complete = False
        self._is_ended = False

    async def send(self, message: "Message") -> None:
        """Pass on a message of the application, unless the answer was ended."""
        if self._is_ended:
            return
        kind = message["type"]
        if kind.endswith("http.response.start"):
            self.status = message["status"]
        elif kind == "websocket.accept":
            self.status = ACCEPTED
        elif kind == "websocket.close" or (kind.endswith(".body") and not message.get("more_body", False)):
            self._is_complete = True
        if kind == "websocket.close" and self.status == ACCEPTED:
            self.status = message.get("code", 1000)
        if "headers" in message:
            kept = [(name, value) for name, value in message["headers"] if not name.lower().startswith(_CORS)]
            message = {**message, "headers": kept}
        await self._send(message)

    async def end(self, close_code: int, status: int, code: str, text: str) -> None:
        """End the answer: with an error if there is none yet, else by closing the WebSocket or the stream."""
        self._is_ended = True
        if self._is_complete:
            return
        if not self.status:
            self.status = status
            await answer_error(self._scope, self._send, status, code, text)
        elif self._scope["type"] == "websocket":
            self.status = close_code
            await self._send({"type": "websocket.close", "code": close_code, "reason": text})
        else:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
