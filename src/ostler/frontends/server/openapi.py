"""Describes the HTTP routes as OpenAPI 3.1."""

from typing import Any

import msgspec

from ostler.frontends.server.chat_route import ChatBody
from ostler.frontends.server.rest_routes import ForkBody, NewSession, SessionDescription, SessionPatch
from ostler.wire.client_frames import ClientFrame
from ostler.wire.frames_shared import PROTOCOL_VERSION, SessionSnapshot

_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_CONNECTION = {"name": "connection", "in": "query", "schema": {"type": "string", "pattern": "^[!-~]{1,64}$"}}
_ERRORS = {
    "400": "the request is not valid",
    "401": "a valid token is required",
    "403": "Host or Origin is not allowed",
    "404": "there is no such session of this user",
    "405": "the method is not allowed",
    "409": "the session is busy",
    "413": "the body is too large",
    "415": "the content type must be application/json",
    "422": "the change is not possible",
    "429": "too many requests",
    "503": "the server is shutting down or has no model",
}


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    kinds = (NewSession, SessionPatch, ForkBody, ChatBody, SessionDescription, SessionSnapshot, ClientFrame)
    schemas, definitions = msgspec.json.schema_components(
        kinds, schema_hook=lambda _: {"description": "any value"}, ref_template="#/components/schemas/{name}"
    )
    new, patch, fork, chat, session, conversation, message = schemas
    definitions["Error"] = {
        "type": "object",
        "required": ["error", "code"],
        "properties": {"error": {"type": "string"}, "code": {"type": "string"}},
    }
    one = "/api/agent/sessions/{id}"
    sessions = {"type": "object", "required": ["sessions"], "properties": {"sessions": _array(session)}}
    messages = {"anyOf": [message, {**_array(message), "maxItems": 100}]}
    limit = {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}}
    paths = {
        "/api/agent/sessions": {
            "post": _operation("createSession", "Create a session", "201", session, new),
            "get": _operation("listSessions", "List the user's sessions", "200", sessions, parameters=[limit]),
        },
        one: {
            "parameters": [_ID],
            "get": _operation("getSession", "Describe a session", "200", session),
            "patch": _operation("changeSession", "Set title or model", "200", session, patch),
            "delete": _operation("deleteSession", "Delete a session", "204", None),
        },
        f"{one}/fork": {
            "parameters": [_ID],
            "post": _operation("forkSession", "Copy a session", "201", session, fork),
        },
        f"{one}/messages": {
            "parameters": [_ID],
            "get": _operation("getMessages", "Return the conversation", "200", conversation),
            "post": _operation("sendMessages", "Send messages of a client", "202", {}, messages, [_CONNECTION]),
        },
        f"{one}/stream": {
            "parameters": [_ID],
            "get": _operation("stream", "Server messages as server-sent events", "200", None, parameters=[_CONNECTION]),
        },
        "/api/agent/capabilities": {"get": _operation("getCapabilities", "Versions and features", "200", {})},
        "/api/chat/stream": {
            "post": {**_operation("chat", "A plain chat", "200", None, chat), "deprecated": True},
        },
        "/healthz": {"get": {**_operation("health", "Whether the process runs", "200", {}), "security": []}},
        "/readyz": {"get": _operation("ready", "Whether it accepts work", "200", {})},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ostler server", "version": str(PROTOCOL_VERSION)},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": definitions,
        },
    }


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _operation(
    name: str,
    summary: str,
    status: str,
    answer: dict[str, Any] | None,
    body: dict[str, Any] | None = None,
    parameters: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    content = {} if answer is None else {"content": {"application/json": {"schema": answer}}}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    errors = {code: {"description": text, "content": error} for code, text in _ERRORS.items()}
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {status: {"description": summary, **content}, **errors},
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    if parameters:
        operation["parameters"] = parameters
    return operation
