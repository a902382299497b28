"""Every route answers as the OpenAPI document says, also to requests that it forbids.

A sample of what schemathesis tries in `tests/interop/test_server_openapi.py`.
"""

import itertools
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ostler.core.errors import JournalError
from ostler.frontends.server.openapi import openapi_document
from ostler.storage.sqlite_store import SqliteStore
from ostler.wire.frames_schema import frames_schema

pytestmark = pytest.mark.req("SV-2")
DOCUMENT = openapi_document()
METHODS = ("get", "post", "patch", "delete")
VALUES = (None, True, -1, 10**30, 1.5, "", "x" * 300, "\ud83d\ude00\u0000", [], {}, [{}], {"type": "hello"})
STREAMS = ("/api/agent/sessions/{id}/stream", "/api/chat/stream")  # they need a model, or do not end
PAGES = ("/api/docs",)
OUTSIDE = ("/api/agent/pair", "/api/agent/token")  # answered by the guard, which has its own tests


def operations():
    for path, operations in DOCUMENT["paths"].items():
        for method in METHODS:
            if method in operations and path not in (*STREAMS, *OUTSIDE, *PAGES):
                yield pytest.param(method, path, operations[method], id=operations[method]["operationId"])


def bodies(operation):
    """Return bodies of all kinds: without JSON, of each type, and with each type for each field."""
    yield from (None, b"", b"{", b"\xff\xfe", b'{"a": 1, "a": 2}', b"NaN", b"[" * 10_000)
    yield from (json.dumps(value).encode() for value in VALUES)
    if "requestBody" in operation:
        schema = resolve(operation["requestBody"]["content"]["application/json"]["schema"])
        for name, value in itertools.product(schema.get("properties", {"type": 0}), VALUES):
            yield json.dumps({name: value}).encode()


def resolve(schema):
    return DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def check(operation, code, answer):
    """Check status, content type and body against the document."""
    responses = operation["responses"]
    assert str(code) in responses, (operation["operationId"], code, answer)
    content = responses[str(code)].get("content")
    if content is None:
        assert answer is None
        return
    schema = {**content["application/json"]["schema"], "components": DOCUMENT["components"]}
    Draft202012Validator(schema).validate(answer)


def test_document_is_valid():
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    names = [operation["operationId"] for path in DOCUMENT["paths"].values() for operation in _operations(path)]
    assert len(names) == len(set(names))


def _operations(path):
    return [path[method] for method in METHODS if method in path]


@pytest.mark.parametrize(("method", "path", "operation"), list(operations()))
def test_answers_match_the_document(models, serve, method, path, operation):
    with models.playing() as model:
        client = serve(model).client
        session = client.create()
        for body, session_id in itertools.product(bodies(operation), (session, "unknown", "%00", "..%2f..")):
            code, answer = client.request(method.upper(), path.replace("{id}", session_id), body)
            check(operation, code, answer)
            if operation["operationId"] == "deleteSession" and code == 204:
                session = client.create()


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_other_methods_are_refused_and_the_allowed_ones_are_named(models, serve, path):
    with models.playing() as model:
        client = serve(model).client
        allowed = {method.upper() for method in METHODS if method in DOCUMENT["paths"][path]}
        for method in {"GET", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"} - allowed:
            answer = client.open(method, path.replace("{id}", "unknown"))
            answer.read()
            assert answer.status in (404, 405) if path in OUTSIDE else answer.status == 405
            if answer.status == 405:
                assert set(answer.headers["Allow"].split(", ")) - {"HEAD"} == allowed


def test_page_lists_all_routes_and_schemas_without_scripts(models, serve):
    with models.playing() as model:
        client = serve(model).client
        answer = client.open("GET", "/api/docs")
        text = answer.read().decode()
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    for path in DOCUMENT["paths"]:
        assert path in text
    for name in (*DOCUMENT["components"]["schemas"], *frames_schema()["$defs"]):
        assert f"<code>{name}</code>" in text
    assert "<script" not in text
    assert "src=" not in text


def test_schema_in_the_docs_is_the_current_one():
    file = Path(__file__).parents[3] / "docs" / "server-protocol.schema.json"
    message = "write it again with `ostler serve schema > docs/server-protocol.schema.json`"
    assert json.loads(file.read_text()) == json.loads(json.dumps(frames_schema())), message


def test_server_without_its_database_is_not_ready(models, serve, monkeypatch):
    with models.playing() as model:
        client = serve(model).client
        assert client.request("GET", "/readyz") == (200, {"status": "ok"})

        def fail(*_):
            raise JournalError("the disk is gone")

        monkeypatch.setattr(SqliteStore, "list", fail)
        code, answer = client.request("GET", "/readyz")
        assert (code, answer) == (503, {"status": "no database"})
        check(DOCUMENT["paths"]["/readyz"]["get"], code, answer)
