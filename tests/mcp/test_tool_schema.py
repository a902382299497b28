"""Schemas and descriptions from servers: valid for strict providers, and limited in size."""

import msgspec
import pytest

from ostler.mcp.tool_schema import MAX_SCHEMA_BYTES, clean_description, clean_schema

pytestmark = pytest.mark.req("MC-3")


def test_local_references_are_replaced_and_others_removed():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "properties": {
            "at": {"$ref": "#/$defs/Point", "description": "where"},
            "far": {"$ref": "https://example.com/schema.json", "description": "away"},
            "none": {"$ref": "#/$defs/Missing"},
        },
        "required": ["at", "gone"],
    }
    assert clean_schema(schema) == {
        "type": "object",
        "properties": {
            "at": {"type": "object", "properties": {"x": {"type": "number"}}, "description": "where"},
            "far": {"description": "away"},
            "none": {},
        },
        "required": ["at"],
    }


def test_recursive_schema_is_cut():
    node = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    assert len(msgspec.json.encode(clean_schema(node))) <= MAX_SCHEMA_BYTES


def test_reference_to_itself_is_removed():
    assert clean_schema({"properties": {"a": {"$ref": "#/properties/a"}}})["properties"]["a"] == {}


def test_choice_at_the_top_level_becomes_optional_properties():
    schema = {"oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]}
    assert clean_schema(schema) == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["object", "evil"]},
        {"properties": {"bad name!": {"type": "string"}, "a\x1b": {}, "x" * 80: {}}, "required": ["bad name!", 7]},
        {"properties": "none", "required": "none", "anyOf": 3},
        {"type": "array"},
    ],
)
def test_unusable_parts_are_removed(schema):
    cleaned = clean_schema(schema)
    assert cleaned["type"] == "object"
    assert cleaned["properties"] == {}
    assert "required" not in cleaned


def test_giant_schema_is_limited():
    properties = {f"p{n}": {"type": "string", "description": "d" * 5000} for n in range(5000)}
    assert len(msgspec.json.encode(clean_schema({"properties": properties}))) <= MAX_SCHEMA_BYTES


def test_description_has_no_escape_sequences_and_is_limited():
    assert clean_description("a\x1b[31mb\x07") == "ab"
    assert len(clean_description("x" * 100_000)) == 2048
