"""The deprecated `POST /api/chat/stream`: a plain chat without tools, which is not stored."""

import os
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ostler.core.events import MessageDone, TextDelta, TurnEnded
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Session
from ostler.frontends.server.frame_translator import hide_internal_error
from ostler.frontends.server.http_errors import HttpError, read_json
from ostler.frontends.server.hubs import SessionHubs
from ostler.frontends.server.sse_route import STREAM_HEADERS, ClosingStream
from ostler.wire.frames_shared import Frame

HEADERS = {**STREAM_HEADERS, "Deprecation": "true", "Link": '</api/agent/sessions>; rel="successor-version"'}
MAX_BODY = 1024 * 1024


class ChatMessage(Frame, frozen=True):
    """A message of a chat."""

    role: Literal["user", "assistant", "system"]
    content: str


class ChatBody(Frame, frozen=True):
    """The body of the request: one message, or all messages of the chat so far."""

    message: str = ""
    messages: tuple[ChatMessage, ...] = ()


class ChatRoute:
    """Streams one answer per request, in a session that is forgotten afterwards."""

    def __init__(self, hubs: SessionHubs) -> None:
        self._hubs = hubs
        self._sessions: set[Session] = set()
        hubs.on_drain.append(self._end_turns)

    def _end_turns(self) -> None:
        """End the running chats, which no other process can continue."""
        for session in self._sessions:
            if session.turn:
                session.turn.cancel()

    async def answer(self, request: Request) -> Response:
        body = await read_json(request, ChatBody, MAX_BODY)
        text = body.message or "\n\n".join(_line(message) for message in body.messages)
        if len(body.messages) == 1 and not body.message:
            text = body.messages[0].content
        if not text.strip():
            raise HttpError(400, "empty_message", "the message is empty")
        user = request.state.user
        await self._hubs.begin_chat(user)
        try:
            session = await self._hubs.parts.open_chat(user)
        except BaseException:
            self._hubs.end_chat(user)
            raise
        self._sessions.add(session)
        return ClosingStream(_answer(session, text), HEADERS, lambda: self._end(session, user))

    async def _end(self, session: Session, user: str) -> None:
        self._sessions.discard(session)
        self._hubs.end_chat(user)
        await session.aclose()


def _line(message: ChatMessage) -> str:
    return f"{message.role.capitalize()}: {message.content}"


async def _answer(session: Session, text: str) -> AsyncIterator[bytes]:
    number, whole = 0, ""
    subscription = session.subscribe(session.last_seq)
    try:
        session.start(Prompt(os.urandom(8).hex(), (TextContent(text),)))
        async for envelope in subscription:
            match hide_internal_error(envelope.event):
                case TextDelta(_, piece):
                    yield _data({"type": "content_chunk", "content": piece, "seq": number})
                    number += 1
                case MessageDone(message):
                    whole += message.text
                case TurnEnded(_, reason, fault):
                    if fault or reason != "done":
                        error = fault.message if fault else f"the turn ended: {reason}"
                        yield _data({"type": "error", "error": error}) + b"data: [ERROR]\n\n"
                    else:
                        message_data = {"role": "assistant", "content": whole}
                        yield _data({"type": "message_complete", "message": message_data}) + b"data: [DONE]\n\n"
                    return
                case _:
                    pass
    finally:
        subscription.close()


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
