"""Receives the answer of an authorization server: the browser opens an address on this machine, or it is pasted."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

import msgspec

from ostler.core.errors import BackendError, UsageError
from ostler.http.server_closing import stop_accepting
from ostler.text.sanitise import sanitise

PATH = "/callback"
HOST = "127.0.0.1"
MAX_HEAD = 32 * 1024
READ_SECONDS = 10.0
_DONE = b"Ostler received the answer. You can close this page and return to the terminal."
_IGNORED = b"This is not the answer to the login that Ostler waits for."


class Expected(msgspec.Struct, frozen=True):
    """What the answer to one login must contain."""

    state: str
    issuer: str
    has_issuer: bool = False


class RedirectListener:
    """Waits for the browser at `uri`. Answers to other logins are ignored."""

    def __init__(self, expected: Expected) -> None:
        self.uri = ""
        self._expected = expected
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def answer(self) -> dict[str, str]:
        """Return the parameters of the answer."""
        return await asyncio.shield(self._answer)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._take(head.split(b"\r\n", 1)[0].decode("latin-1"))
                writer.write(
                    b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
                    b"cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n%b"
                    % (status, len(text), text)
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _take(self, line: str) -> tuple[bytes, bytes]:
        """Accept the answer in a request line; return the status and the text for the browser."""
        words = line.split(" ")
        target = words[1] if len(words) == 3 and words[0] == "GET" else ""
        path, _, query = target.partition("?")
        parameters = dict(parse_qsl(query))
        if path != PATH or parameters.get("state") != self._expected.state or self._answer.done():
            return b"404 Not Found", _IGNORED
        self._answer.set_result(parameters)
        return b"200 OK", _DONE


@asynccontextmanager
async def listening(expected: Expected, port: int) -> AsyncIterator[RedirectListener]:
    """Listen at a port, or at a free one if it is 0. Raises `UsageError`."""
    listener = RedirectListener(expected)
    try:
        server = await asyncio.start_server(listener.handle, HOST, port, limit=MAX_HEAD)
    except OSError as error:
        raise UsageError(
            f"cannot listen at port {port}: {error.strerror}", hint="close the program that uses it"
        ) from None
    listener.uri = f"http://{HOST}:{server.sockets[0].getsockname()[1]}{PATH}"
    try:
        yield listener
    finally:
        await stop_accepting(server.sockets)
        server.close()


def read_pasted(text: str, expected: Expected) -> dict[str, str]:
    """Return the parameters of a pasted address, or of a code alone. Raises `UsageError` if it is neither."""
    text = text.strip()
    if "?" in text or "=" in text:
        parameters = dict(parse_qsl(text.partition("?")[2] if "?" in text else text))
        if parameters.get("state") != expected.state:
            raise UsageError("this is not the address of this login", hint="copy it from the browser's address bar")
        return parameters
    if not text or expected.has_issuer:
        raise UsageError("the whole address is needed", hint="copy it from the browser's address bar")
    return {"code": text}  # PKCE makes a code of another login useless


def read_code(parameters: Mapping[str, str], expected: Expected) -> str:
    """Return the code of an answer. Raises `BackendError` if it is from another issuer, or a refusal."""
    issuer = parameters.get("iss")
    if issuer != expected.issuer and (issuer is not None or expected.has_issuer):
        raise BackendError(f"the answer does not come from {expected.issuer}", code="oauth")
    if error := parameters.get("error"):
        text = ": ".join(filter(None, (error, parameters.get("error_description"))))
        raise BackendError(f"the login was refused: {' '.join(sanitise(text).split())[:300]}", code="oauth_refused")
    if not parameters.get("code"):
        raise BackendError("the answer has no code", code="oauth")
    return parameters["code"]
