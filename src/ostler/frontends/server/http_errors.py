"""Errors as JSON answers, and reading a request's body within a limit."""

import asyncio
import logging
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from ostler.core.errors import JournalError, OstlerError, UsageError

T = TypeVar("T")
log = logging.getLogger("ostler.server")
BODY_SECONDS = 30  # for the whole body of a request
_CODES = {404: "not_found", 405: "bad_message", 401: "unauthenticated", 403: "forbidden"}


class HttpError(Exception):
    """An error with its HTTP status and code."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a JSON request. Raises `HttpError`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise HttpError(413, "too_large", f"the body has more than {limit} bytes")
    except TimeoutError:
        raise HttpError(408, "bad_message", f"the body did not arrive within {BODY_SECONDS} seconds") from None
    except ClientDisconnect:
        raise HttpError(400, "bad_message", "the client closed the connection before the body was complete") from None
    if body and kind != "application/json":
        raise HttpError(415, "bad_message", "the content type must be application/json")
    return bytes(body)


async def read_json(request: Request, kind: type[T], limit: int) -> T:
    """Return the decoded body; an empty one is read as `{}`. Raises `HttpError`."""
    body = await read_body(request, limit)
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HttpError(400, "bad_message", str(error)[:500]) from None


async def answer_error(request: Request, error: Exception) -> Response:
    """Return the answer for an error, without a traceback."""
    headers: Mapping[str, str] | None = None
    match error:
        case HttpError():
            status, code, text = error.status, error.code, str(error)
        case HTTPException():
            status, code, text = error.status_code, _CODES.get(error.status_code, "internal"), str(error.detail)
            headers = {"Allow": ", ".join(_methods(request))} if status == 405 else error.headers
        case OstlerError() if is_not_found(error):
            status, code, text = 404, "not_found", "session not found"
        case JournalError():
            status, code, text = 409, "busy", error.fault.message
        case UsageError():
            status, code, text = 422, "bad_change", error.fault.message
        case OstlerError():
            status, code, text = 503, "model_unavailable", error.fault.message
        case _:
            log.error("request failed: %s %s", request.method, request.url.path, exc_info=error)
            status, code, text = 500, "internal", "internal error"
    return JSONResponse({"error": text, "code": code}, status, headers)


def _methods(request: Request) -> list[str]:
    """Return the methods of all routes of a path; each route knows only its own."""
    routes = (route for route in request.app.routes if isinstance(route, Route))
    return sorted({m for route in routes if route.matches(request.scope)[0] != Match.NONE for m in route.methods or ()})


def is_not_found(error: OstlerError) -> bool:
    """Return whether an error says that a session does not exist for this user."""
    return error.fault.code == "session_not_found"
