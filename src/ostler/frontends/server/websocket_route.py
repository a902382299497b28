"""Serves a session over a WebSocket."""

import asyncio
import logging

from starlette.responses import JSONResponse
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from ostler.core.errors import OstlerError
from ostler.frontends.server.connection import ClientConnection
from ostler.frontends.server.frame_handler import FrameHandler, error_code
from ostler.frontends.server.http_errors import HttpError, is_not_found
from ostler.frontends.server.hub import SessionHub
from ostler.frontends.server.hubs import SessionHubs
from ostler.wire.client_frames import Hello
from ostler.wire.frames import FrameError, decode_client_frame, encode_frame
from ostler.wire.frames_shared import PROTOCOL_VERSION, CloseCode, ErrorCode
from ostler.wire.manifest_rules import ManifestError
from ostler.wire.server_frames import ErrorMessage, Heartbeat

log = logging.getLogger("ostler.server")
CLOSING_SECONDS = 1.0


class WebSocketRoute:
    """Handles the connections of `WS /api/agent/sessions/{id}/stream`."""

    def __init__(self, hubs: SessionHubs) -> None:
        self._hubs = hubs
        self._config = hubs.parts.config

    async def serve(self, websocket: WebSocket) -> None:
        user = websocket.state.user
        try:
            hub = await self._find(user, websocket.path_params["id"])
        except OstlerError as error:
            status = 404 if is_not_found(error) else 503
            await _deny(websocket, status, "session not found" if status == 404 else error.fault.message)
            return
        try:
            self._hubs.check_connections(hub)
            await websocket.accept()
            await self._serve(websocket, hub, user)
        except HttpError as error:
            await _deny(websocket, error.status, str(error))
        except WebSocketDisconnect:
            pass
        finally:
            hub.release_use()

    async def _find(self, user: str, session_id: str) -> SessionHub:
        if self._hubs.draining:
            raise OstlerError("the server is shutting down")
        hub = await self._hubs.get(user, session_id)
        hub.keep_use()
        return hub

    async def _serve(self, websocket: WebSocket, hub: SessionHub, user: str) -> None:
        hello = await self._receive_hello(websocket, hub)
        if hello is None:
            return
        connection = ClientConnection(hub, hello, user)
        try:
            await hub.attach(connection)
        except ManifestError as error:
            await _fail(websocket, hub, CloseCode.BAD_MANIFEST, str(error), "bad_manifest")
            return
        except OstlerError as error:
            code = error_code(error)
            close = CloseCode.BAD_MESSAGE if code == "bad_change" else CloseCode.RESTART
            await _fail(websocket, hub, close, error.fault.message, code)
            return
        tasks = [
            asyncio.create_task(self._write(websocket, hub, connection)),
            asyncio.create_task(self._read(websocket, hub, connection)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hub.detach(connection)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _receive_hello(self, websocket: WebSocket, hub: SessionHub) -> Hello | None:
        """Return the `hello`, or close the connection and return None."""
        try:
            async with asyncio.timeout(self._config.hello_timeout):
                frame = decode_client_frame(await _receive_text(websocket), self._config.max_frame)
        except TimeoutError:
            await _fail(websocket, hub, CloseCode.NO_HELLO, "no hello was received", "hello_expected")
            return None
        except FrameError as error:
            close = CloseCode.BAD_MANIFEST if error.code == "bad_manifest" else CloseCode.BAD_MESSAGE
            await _fail(websocket, hub, close, str(error), error.code)
            return None
        if not isinstance(frame, Hello):
            await _fail(websocket, hub, CloseCode.BAD_MESSAGE, "the first message must be hello", "hello_expected")
            return None
        if frame.protocol != PROTOCOL_VERSION:
            text = f"the client speaks protocol {frame.protocol}, this server {PROTOCOL_VERSION}"
            await _fail(websocket, hub, CloseCode.BAD_MESSAGE, text, "bad_message")
            return None
        return frame

    async def _read(self, websocket: WebSocket, hub: SessionHub, connection: ClientConnection) -> None:
        handler = FrameHandler(hub, connection)
        while True:
            try:
                text = await _receive_text(websocket)
            except FrameError as error:
                connection.close(CloseCode.BAD_MESSAGE, str(error), ErrorMessage(hub.id, str(error), error.code))
                await connection.written.wait()
                return
            try:
                frame = decode_client_frame(text, self._config.max_frame)
            except FrameError as error:
                if error.header:
                    handler.refuse(error, error.header)
                    continue
                refused = ErrorMessage(hub.id, str(error)[:500], error.code)
                connection.close(CloseCode.BAD_MESSAGE, str(error), refused)
                await connection.written.wait()
                return
            if frame is not None:
                await handler.handle(frame, len(text.encode("utf-8", "replace")))

    async def _write(self, websocket: WebSocket, hub: SessionHub, connection: ClientConnection) -> None:
        """Send what waits; a heartbeat if there is nothing. A client that does not read is closed."""
        try:
            while not connection.close_code:
                data = await self._next(hub, connection)
                async with asyncio.timeout(self._config.send_timeout):
                    await websocket.send_text(data.decode())
            async with asyncio.timeout(CLOSING_SECONDS):
                while message := await connection.outbox.get():
                    await websocket.send_text(message.data.decode())
                await websocket.close(connection.close_code, connection.close_reason)
        except TimeoutError:
            fields = {"user": connection.user}
            log.info("a client does not read and is closed", extra={"session": hub.id, "fields": fields})
            if websocket.application_state is WebSocketState.CONNECTED:
                await websocket.close(CloseCode.TOO_SLOW, "the client does not read its messages")
        finally:
            connection.written.set()

    async def _next(self, hub: SessionHub, connection: ClientConnection) -> bytes:
        """Return the next message, or a heartbeat if there is none for some time."""
        try:
            async with asyncio.timeout(self._config.heartbeat):
                message = await connection.outbox.get()
        except TimeoutError:
            message = None
        return message.data if message else encode_frame(Heartbeat(hub.id))


async def _receive_text(websocket: WebSocket) -> str:
    """Return the next text. Raises `WebSocketDisconnect` at the end and `FrameError` for a binary message."""
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code") or 1005)
    text = message.get("text")
    if text is None:
        raise FrameError("messages must be text, not binary")
    return str(text)


async def _fail(websocket: WebSocket, hub: SessionHub, code: int, text: str, error: ErrorCode) -> None:
    await websocket.send_text(encode_frame(ErrorMessage(hub.id, text, error)).decode())
    await websocket.close(code, text[:120].encode("ascii", "replace").decode())


async def deny_unknown(websocket: WebSocket) -> None:
    """Answer a WebSocket on an address that has none."""
    await _deny(websocket, 404, "not found")


async def _deny(websocket: WebSocket, status: int, text: str) -> None:
    code = {404: "not_found", 429: "rate_limited"}.get(status, "draining")
    await websocket.send_denial_response(JSONResponse({"error": text, "code": code}, status))
