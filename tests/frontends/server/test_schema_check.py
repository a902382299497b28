import re
import time

import pytest

from ostler.frontends.server.schema_check import find_mismatch
from ostler.wire.tool_schemas import check_schema

pytestmark = pytest.mark.req("SV-4")


def check(schema, value):
    schema = {"type": "object", "properties": {"a": schema}}
    check_schema(schema)
    return find_mismatch(schema, {"a": value})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, 10**400, 1.5),
        ({"type": "integer"}, 3.0, True),
        ({"multipleOf": 7}, 7 * 10**400, 10**400),
        ({"multipleOf": 0.1}, 0.3, 0.35),
        ({"multipleOf": 2}, 4, float("inf")),
        ({"multipleOf": 2}, 4, float("nan")),
        ({"multipleOf": 1e-300}, 1e300, 1.5e-300),
        ({"maximum": 1.5}, 1, 10**400),
        ({"enum": [1, "b", None, {"x": [1]}]}, {"x": [1]}, {"x": [True]}),
        ({"enum": [1, 0]}, 1.0, True),
        ({"const": True}, True, 1),
        ({"uniqueItems": True}, [1, "1", {"a": 1, "b": 2}], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
        ({"pattern": "^a+$"}, "aa", "ab"),
        ({"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False}, {"x1": ""}, {"y": ""}),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"maximum": 1}}, "ab", "a"),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"maximum": 1}}, 1, 2),
        ({"contains": {"const": 7}}, [1, 7], [1]),
        ({"contains": {"const": 7}, "minContains": 0, "maxContains": 1}, [], [7, 7]),
        ({"propertyNames": {"pattern": "^[a-z]+$"}}, {"b": 1}, {"B": 1}),
        ({"propertyNames": False}, {}, {"b": 1}),
        ({"dependentRequired": {"b": ["c"]}}, {"b": 1, "c": 1}, {"b": 1}),
        ({"dependentSchemas": {"b": {"required": ["c"]}}}, {"c": 1}, {"b": 1}),
        ({"dependencies": {"b": ["c"], "d": {"maxProperties": 1}}}, {"d": 1}, {"c": 1, "d": 1}),
        ({"items": {"$ref": "#/properties/a/x-shapes/s"}, "x-shapes": {"s": {"type": "string"}}}, ["s"], [1]),
    ],
)
def test_values(schema, good, bad):
    assert check(schema, good) == ""
    assert check(schema, bad).startswith("a")


def test_half_of_a_surrogate_pair_is_one_character():
    assert check({"pattern": "^..$"}, "a\ud83d") == ""
    assert check({"pattern": "^.$"}, "a\ud83d")
    assert check({"pattern": "\ud83d"}, "anything at all") == ""


@pytest.mark.parametrize("pattern", [r"^(?!\.)(?!.*\.\.)[a-z]+@", r"(a)\1", r"\p{L}{1,1000}", "a" * 2000])
def test_pattern_that_cannot_be_checked_in_linear_time_allows_everything(pattern):
    assert check({"pattern": pattern}, "anything at all") == ""


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"enum": [[n] for n in range(9_000)]}}, [[8_999]] * 1000),
        ({"items": {"enum": list(range(12_000))}}, [11_999] * 60_000),
        ({"items": {"const": {"a": list(range(10_000))}}}, [{"a": list(range(10_000))}] * 1000),
        ({"pattern": "((a{1,30}){1,30}i)"}, "a" * 1_000_000),
        ({"patternProperties": {f"((a{{1,30}}){{1,30}}{n})": {} for n in range(1500)}}, {"b": 1}),
        ({"patternProperties": {"((a{1,30}){1,30}i)": {}}}, {"a" * n: 1 for n in range(2000)}),
        ({"anyOf": [{"$ref": "#/properties/a"}] * 50}, 1),
        ({"items": {"dependentRequired": {f"name{n}": ["b"] for n in range(4000)}}}, [{}] * 100),
        ({"contains": {"enum": [[n] for n in range(9_000)]}}, [[8_999]] * 1000),
        ({"items": {"required": [f"name{n}" for n in range(5000)]}}, [{f"name{n}": 1 for n in range(5000)}] * 100),
    ],
)
def test_check_ends_after_a_number_of_steps(schema, value):
    began = time.process_time()
    assert check(schema, value) == "too complex to check"
    assert time.process_time() - began < 10  # it took minutes without the limit


def test_what_a_reference_names_is_part_of_the_schema():
    with pytest.raises(ValueError, match=re.escape("'strange' is not a type")):
        check_schema({"type": "object", "$ref": "#/x/y", "x": {"y": {"type": "strange"}}})


@pytest.mark.parametrize(
    "schema",
    [
        {"dependentRequired": ["b"]},
        {"dependentRequired": {"b": [1]}},
        {"dependencies": {"b": 1}},
        {"dependencies": {"b": [1]}},
        {"contains": 1},
        {"minContains": "1"},
        {"if": []},
    ],
)
def test_schema_with_a_keyword_of_the_wrong_kind_is_refused(schema):
    with pytest.raises(ValueError, match=r"."):
        check_schema({"type": "object", **schema})
