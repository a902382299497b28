"""Headers that repeat arguments of calls to remote servers."""

import pytest

from ostler.mcp.parameter_headers import header_value, parameter_headers, read_header_paths

pytestmark = pytest.mark.req("MC-6")


def schema(**fields):
    return {"type": "object", "properties": fields}


def field(name, kind="string"):
    return {"type": kind, "x-mcp-header": name}


def test_annotated_properties_are_found_also_in_objects():
    nested = {"type": "object", "properties": {"zone": field("Zone", "integer")}}
    assert read_header_paths(schema(a=field("Region"), place=nested, plain={"type": "string"})) == {
        "region": ("a",),
        "zone": ("place", "zone"),
    }


@pytest.mark.parametrize(
    "invalid",
    [
        schema(a=field("")),
        schema(a=field("with space")),
        schema(a=field("x\r\nevil")),
        schema(a=field(7)),
        schema(a=field("A"), b=field("a")),
        schema(a=field("A", "number")),
        schema(a=field("A", "object")),
        schema(a={"x-mcp-header": "A"}),
        schema(a={"type": "array", "items": field("A")}),
        {"type": "object", "anyOf": [schema(a=field("A"))]},
        {"$defs": {"x": field("A")}, **schema(a={"$ref": "#/$defs/x"})},
    ],
)
def test_invalid_annotation_makes_the_declaration_invalid(invalid):
    assert read_header_paths(invalid) is None


@pytest.mark.parametrize("empty", [None, [], {}, schema(), {"properties": 3}, schema(a=True)])
def test_schema_without_annotations_has_no_headers(empty):
    assert read_header_paths(empty) == {}


def test_missing_null_and_structured_arguments_have_no_header():
    paths = {"a": ("a",), "b": ("b", "c"), "d": ("d",), "e": ("e",), "f": ("f",)}
    arguments = {"a": None, "b": 3, "d": {"x": 1}, "e": False, "f": 12}
    assert parameter_headers(paths, arguments) == [("mcp-param-e", "false"), ("mcp-param-f", "12")]


@pytest.mark.parametrize("text", ["a\r\nb: c", " padded", "tab\t", "ü", "=?base64?x?="])
def test_text_that_a_header_cannot_have_is_encoded(text):
    assert header_value(text).startswith("=?base64?")
    assert header_value(text).isprintable()
