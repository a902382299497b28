"""Describes the HTTP routes as OpenAPI 3.1, and this document as a page without scripts for people."""

import json
from html import escape
from typing import Any

import msgspec

from ostler.frontends.server.chat_route import ChatBody
from ostler.frontends.server.rest_routes import (
    CapabilitiesAnswer,
    ForkBody,
    ListedSession,
    NewSession,
    SessionDescription,
    SessionPatch,
)
from ostler.wire.client_frames import ClientFrame
from ostler.wire.frames_shared import PROTOCOL_VERSION, SessionSnapshot
from ostler.wire.pairing import PAIR_PATH, TOKEN_PATH, PairingReply, PairingRequest

JSON, EVENTS = "application/json", "text/event-stream"
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_CONNECTION = {"name": "connection", "in": "query", "schema": {"type": "string", "pattern": "^[!-~]{1,64}$"}}
_LAST_ID = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string", "pattern": "^[0-9]{1,15}$"}}
_LIMIT = {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}}
_SEARCH = {"name": "search", "in": "query", "schema": {"type": "string"}}
_ERRORS = {
    "400": "the request is not valid",
    "401": "a valid token is required",
    "403": "Host or Origin is not allowed, or the token has not the scope",
    "404": "there is no such session of this user",
    "405": "the method is not allowed",
    "408": "the body did not arrive in time",
    "409": "the session is open in another process",
    "413": "the body is too large",
    "415": "the content type must be application/json",
    "422": "the change is not possible",
    "429": "too many requests",
    "503": "the server is shutting down or has no model",
}
_NEED_BODY = ("sendMessages", "chat", "pair")
_STATUS = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"enum": ["ok", "draining", "no database"]}},
}
_ERROR = {"$ref": "#/components/schemas/Error"}
_ACCEPTED = {
    "type": "object",
    "required": ["accepted", "replies"],
    "properties": {"accepted": {"type": "integer"}, "replies": {"type": "array", "items": {"type": "object"}}},
}
_STYLE = "body{font:15px sans-serif;max-width:60em;margin:2em auto}pre{background:#f4f4f4;padding:.6em;overflow:auto}"
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    kinds = {
        "new": NewSession,
        "patch": SessionPatch,
        "fork": ForkBody,
        "chat": ChatBody,
        "session": SessionDescription,
        "listed": ListedSession,
        "conversation": SessionSnapshot,
        "message": ClientFrame,
        "pairing": PairingRequest,
        "paired": PairingReply,
        "capabilities": CapabilitiesAnswer,
    }
    found, definitions = msgspec.json.schema_components(
        kinds.values(), schema_hook=lambda _: {"description": "any value"}, ref_template="#/components/schemas/{name}"
    )
    schemas = dict(zip(kinds, found, strict=True))
    definitions["Error"] = {
        "type": "object",
        "required": ["error", "code"],
        "properties": {"error": {"type": "string"}, "code": {"type": "string"}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ostler server", "version": str(PROTOCOL_VERSION)},
        "security": [{"token": []}],
        "paths": {**_session_paths(schemas), **_other_paths(schemas)},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}, "schemas": definitions},
    }


def _session_paths(schema: dict[str, Any]) -> dict[str, Any]:
    session, message, one = schema["session"], schema["message"], "/api/agent/sessions/{id}"
    sessions = {"type": "object", "required": ["sessions"], "properties": {"sessions": _array(schema["listed"])}}
    answered = {"400": {"description": "no message was accepted", "content": {JSON: {"schema": {"type": "object"}}}}}
    send = _operation(
        "sendMessages",
        "Send messages of a client, of which the first is hello",
        "202",
        _ACCEPTED,
        {"anyOf": [message, {**_array(message), "maxItems": 100}]},
        [_CONNECTION],
    )
    return {
        "/api/agent/sessions": {
            "post": _operation("createSession", "Create a session", "201", session, schema["new"]),
            "get": _operation(
                "listSessions", "List the user's sessions", "200", sessions, parameters=[_LIMIT, _SEARCH]
            ),
        },
        one: {
            "parameters": [_ID],
            "get": _operation("getSession", "Describe a session", "200", session),
            "patch": _operation("changeSession", "Set title or model", "200", session, schema["patch"]),
            "delete": _operation("deleteSession", "Delete a session", "204", None),
        },
        f"{one}/fork": {
            "parameters": [_ID],
            "post": _operation("forkSession", "Copy a session", "201", session, schema["fork"]),
        },
        f"{one}/messages": {
            "parameters": [_ID],
            "get": _operation("getMessages", "Return the conversation", "200", schema["conversation"]),
            "post": {**send, "responses": {**send["responses"], **answered}},
        },
        f"{one}/stream": {
            "parameters": [_ID],
            "get": _operation(
                "stream", "Server messages as events", "200", {}, parameters=[_CONNECTION, _LAST_ID], kind=EVENTS
            ),
        },
    }


def _other_paths(schema: dict[str, Any]) -> dict[str, Any]:
    capabilities = schema["capabilities"]
    legacy = _operation("chat", "A plain chat", "200", {}, schema["chat"], kind=EVENTS)
    pair = _operation("pair", "Exchange a pairing code for a token", "200", schema["paired"], schema["pairing"])
    health = _operation("health", "Whether the process runs", "200", _STATUS)
    ready = _operation("ready", "Whether it accepts work", "200", _STATUS)
    unready = {"anyOf": [_STATUS, _ERROR]}  # the second one if not even the token could be checked
    ready["responses"]["503"] = {"description": "it does not accept work", "content": {JSON: {"schema": unready}}}
    document = {"type": "object"}
    return {
        "/api/agent/capabilities": {"get": _operation("getCapabilities", "Versions and limits", "200", capabilities)},
        "/api/chat/stream": {"post": {**legacy, "deprecated": True}},
        "/api/openapi.json": {"get": _operation("getOpenApi", "This document", "200", document)},
        "/api/docs": {"get": _operation("getPage", "This document as a page", "200", {}, kind="text/html")},
        "/api/schema.json": {"get": _operation("getSchema", "The JSON Schema of the messages", "200", document)},
        PAIR_PATH: {"post": {**pair, "security": []}},
        TOKEN_PATH: {"delete": _operation("revokeToken", "Revoke the token of the request", "204", None)},
        "/healthz": {"get": {**health, "security": []}},
        "/readyz": {"get": ready},
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
    kind: str = JSON,
) -> dict[str, Any]:
    content = {} if answer is None else {"content": {kind: {"schema": answer}}}
    error = {JSON: {"schema": _ERROR}}
    errors = {code: {"description": text, "content": error} for code, text in _ERRORS.items()}
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {status: {"description": summary, **content}, **errors},
    }
    if body is not None:
        operation["requestBody"] = {"required": name in _NEED_BODY, "content": {JSON: {"schema": body}}}
    if parameters:
        operation["parameters"] = parameters
    return operation


def openapi_page(document: dict[str, Any], messages: dict[str, Any]) -> str:
    """Return the page with the routes of the document, its schemas, and the schemas of the messages."""
    title = escape(document["info"]["title"])
    routes = "".join(
        _route(method, path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1><h2>Routes</h2>{routes}"
        f"<h2>Schemas</h2>{_schemas(document['components']['schemas'])}"
        f"<h2>Messages</h2>{_schemas(messages['$defs'])}</body></html>"
    )


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    access = "no token needed" if operation.get("security") == [] else "needs a token"
    note = f"{access}{'; deprecated' if operation.get('deprecated') else ''}"
    heading = f"<h3><code>{escape(method.upper())} {escape(path)}</code></h3>"
    text = f"<p>{escape(operation['summary'])} ({note})</p>"
    parts = {name: operation[name] for name in ("parameters", "requestBody", "responses") if name in operation}
    return f"{heading}{text}<details><summary>details</summary>{_code(parts)}</details>"


def _schemas(schemas: dict[str, Any]) -> str:
    return "".join(
        f"<details><summary><code>{escape(name)}</code></summary>{_code(schema)}</details>"
        for name, schema in schemas.items()
    )


def _code(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2))}</pre>"
