"""The OpenAPI document as a page for people: one HTML file without scripts and without anything from elsewhere."""

import json
from html import escape
from typing import Any

_STYLE = "body{font:15px sans-serif;max-width:60em;margin:2em auto}pre{background:#f4f4f4;padding:.6em;overflow:auto}"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


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
