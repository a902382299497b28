"""Puts the routes of the server together."""

from collections.abc import Collection

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.routing import WebSocketRoute as WebSocketPath
from starlette.types import ASGIApp

from ostler.core.errors import OstlerError
from ostler.frontends.server.chat_route import ChatRoute
from ostler.frontends.server.http_errors import HttpError, answer_error
from ostler.frontends.server.hubs import SessionHubs
from ostler.frontends.server.rest_routes import RestRoutes
from ostler.frontends.server.sse_route import SseRoutes
from ostler.frontends.server.websocket_route import WebSocketRoute, deny_unknown

SESSIONS, ONE = "/api/agent/sessions", "/api/agent/sessions/{id}"


def make_app(hubs: SessionHubs, more_routes: Collection[Route] = ()) -> ASGIApp:
    """Return the ASGI application. The guard around it sets the user. `more_routes` are those of `app`."""
    rest, sse, chat = RestRoutes(hubs), SseRoutes(hubs), ChatRoute(hubs)
    routes = [
        Route(SESSIONS, rest.create, methods=["POST"]),
        Route(SESSIONS, rest.list, methods=["GET"]),
        Route(ONE, rest.get, methods=["GET"]),
        Route(ONE, rest.patch, methods=["PATCH"]),
        Route(ONE, rest.delete, methods=["DELETE"]),
        Route(f"{ONE}/fork", rest.fork, methods=["POST"]),
        Route(f"{ONE}/messages", rest.messages, methods=["GET"]),
        Route(f"{ONE}/messages", sse.post, methods=["POST"]),
        Route(f"{ONE}/stream", sse.stream, methods=["GET"]),
        WebSocketPath(f"{ONE}/stream", WebSocketRoute(hubs).serve),
        Route("/api/agent/capabilities", rest.capabilities, methods=["GET"]),
        Route("/api/chat/stream", chat.answer, methods=["POST"]),
        Route("/api/openapi.json", _openapi, methods=["GET"]),
        Route("/api/docs", _page, methods=["GET"]),
        Route("/api/schema.json", _schema, methods=["GET"]),
        Route("/healthz", rest.health, methods=["GET"]),
        Route("/readyz", rest.ready, methods=["GET"]),
        *more_routes,
        WebSocketPath("/{path:path}", deny_unknown),
    ]
    errors = (HttpError, HTTPException, OstlerError, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(errors, answer_error))
    app.router.redirect_slashes = False
    return app


async def _openapi(request: Request) -> Response:
    from ostler.frontends.server.openapi import openapi_document

    return JSONResponse(openapi_document())


async def _page(request: Request) -> Response:
    from ostler.frontends.server.openapi import PAGE_HEADERS, openapi_document, openapi_page
    from ostler.wire.frames_schema import frames_schema

    return HTMLResponse(openapi_page(openapi_document(), frames_schema()), headers=PAGE_HEADERS)


async def _schema(request: Request) -> Response:
    from ostler.wire.frames_schema import frames_schema

    return JSONResponse(frames_schema())
