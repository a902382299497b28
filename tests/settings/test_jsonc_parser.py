"""JSON with comments and trailing commas, and exact positions."""

import json
import sys
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.settings.jsonc_parser import MAX_DEPTH, JsoncDocument, JsoncSyntaxError, TextPosition, decode_text

pytestmark = pytest.mark.req("DX-4")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        (" \n// only a comment\n", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2, ], /* c */ }', {"a": [1, 2]}),
        ('{\n// c\n"a": "// no comment /* here */, ]"\n}', {"a": "// no comment /* here */, ]"}),
        ('{"a": 1 /* x, "a": 2 */}', {"a": 1}),
        ('{"url": "http://x/y"} // end', {"url": "http://x/y"}),
        ('{"a": "\\u00e9\\ud83d\\ude00\\n\\"", "b": -1.5e3}', {"a": 'é😀\n"', "b": -1500.0}),
        ('{"t": true, "f": false, "n": null, "e": {}, "l": []}', {"t": True, "f": False, "n": None, "e": {}, "l": []}),
        ("[1,2,]", [1, 2]),
        ("// c\r\n3", 3),
        ('{"a": true//c\n}', {"a": True}),
        ('{"a": 1/**/,"b":2}', {"a": 1, "b": 2}),
    ],
)
def test_value(text: str, value: object) -> None:
    assert JsoncDocument("f", text).value == value


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ('{"a" 1}', 1, 6, "colon"),
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3, "comma"),
        ('{\n  "a": 1,,\n}', 2, 10, "key in double quotes"),
        ("{,}", 1, 2, "key in double quotes"),
        ("{a: 1}", 1, 2, "key in double quotes"),
        ("{'a': 1}", 1, 2, "key in double quotes"),
        ("{\"a\": 'x'}", 1, 7, "double quotes"),
        ('{"a": True}', 1, 7, "true in lower case"),
        ('{"a": undefined}', 1, 7, "expected a value, not 'undefined'"),
        ('{"a": NaN}', 1, 7, "expected a value"),
        ('{"a": -Infinity}', 1, 7, "not a valid JSON number"),
        ('{"a": 01}', 1, 7, "not a valid JSON number"),
        ('{"a": 1.}', 1, 7, "not a valid JSON number"),
        ('{"a": .5}', 1, 7, "expected a value"),
        ('{"a": +5}', 1, 7, "expected a value"),
        ('{"a": 1e999}', 1, 7, "too large"),
        ('{"a": ]}', 1, 7, "expected a value"),
        ('{"a": }', 1, 7, "expected a value"),
        ("[1, 2", 1, 6, "expected a comma or ]"),
        ('{\n"a": {\n', 3, 1, "{ of line 2 is not closed"),
        ('{"a": 1', 1, 8, "expected a comma or }"),
        ('{"a":', 1, 6, "the file ends"),
        ('{"a"', 1, 5, "colon"),
        ('{"a": "x', 1, 7, "no closing quote"),
        ('{"a": "x\ny"}', 1, 9, "line break"),
        ('{"a": "x\0y"}', 1, 9, "control character"),
        ('{"a": "\\q"}', 1, 8, "escape is invalid"),
        ('{"a": "\\u12"}', 1, 9, "escape is invalid"),
        ('{"a": "\\ud800"}', 1, 7, "surrogate"),
        ('{"\\udc00": 1}', 1, 2, "surrogate"),
        ('{"a": 1} x', 1, 10, "unexpected text"),
        ('{"a": 1}}', 1, 9, "unexpected text"),
        ('{"a": 1, /* x', 1, 10, "not closed"),
        ("/", 1, 1, "expected a value"),
        ('{"a": 1,\n "b": 2,\n "a": 3}', 3, 2, "already on line 1"),
        ('{"o": {"x": 1, "x": 1}}', 1, 16, "already on line 1"),
        ('{"a": 1} \0', 1, 10, "unexpected text"),
        ("{\u00a0}", 1, 2, "key in double quotes"),
        ('{"é😀": x}', 1, 8, "expected a value"),
    ],
)
def test_syntax_error_has_its_exact_position(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(JsoncSyntaxError) as caught:
        JsoncDocument("f", text)
    assert (caught.value.position, message in caught.value.message) == (TextPosition(line, column), True), caught.value


TEXT = """{
  // a comment, with "quotes"
  "model": "x",
  "models": {"profiles": [{"name": "a"},
                          {"name": "b", "apiKey": 1}]}, /* é */ "é": true,
}
"""


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ((), (1, 1), (1, 1)),
        (("model",), (3, 3), (3, 12)),
        (("models",), (4, 3), (4, 13)),
        (("models", "profiles"), (4, 14), (4, 26)),
        (("models", "profiles", 0), (4, 27), (4, 27)),
        (("models", "profiles", 1, "apiKey"), (5, 41), (5, 51)),
        (("models", "profiles", 1, "missing"), (5, 27), (5, 27)),
        (("é",), (5, 65), (5, 70)),
        (("model", "deeper"), (3, 3), (3, 12)),
    ],
)
def test_positions(path: tuple[str | int, ...], key: tuple[int, int], value: tuple[int, int]) -> None:
    document = JsoncDocument("f", TEXT)
    assert document.position(path, of_key=True) == key
    assert document.position(path) == value


def test_order_of_keys_is_kept() -> None:
    names = [f"k{n}" for n in range(50, 0, -1)]
    text = "{" + ", ".join(f'"{name}": 1' for name in names)
    assert list(JsoncDocument("f", text + "}").value) == names
    assert list(JsoncDocument("f", text + ", /* c */}").value) == names


def test_nesting_depth_is_limited() -> None:
    for text in ("[" * MAX_DEPTH + "]" * MAX_DEPTH, "[" * MAX_DEPTH + "/**/" + "]" * MAX_DEPTH):
        assert JsoncDocument("f", text).value
    for count in (MAX_DEPTH + 1, 900, 100_000):
        with pytest.raises(JsoncSyntaxError, match="nested") as caught:
            JsoncDocument("f", "[" * count + "]" * count)
        assert caught.value.position == (1, MAX_DEPTH + 1)
    with pytest.raises(JsoncSyntaxError, match="nested"):
        JsoncDocument("f", '{"a":' * 100_000)


@pytest.mark.parametrize("text", ['{"a":\n ' + "9" * 1_000_000 + "}", '{"a":\n ' + "9" * 1_000_000 + ", /* c */}"])
@pytest.mark.parametrize("limit", [4300, 0])
def test_huge_numbers_are_rejected_with_position(text: str, limit: int) -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    try:
        with pytest.raises(JsoncSyntaxError, match="digits") as caught:
            JsoncDocument("f", text)
    finally:
        sys.set_int_max_str_digits(before)
    assert caught.value.position == (2, 2)


def test_long_numbers_are_accepted() -> None:
    assert JsoncDocument("f", '{"a": ' + "9" * 90 + "}").value == {"a": int("9" * 90)}
    assert JsoncDocument("f", '{"a": 0.' + "3" * 500_000 + "}").value["a"] == pytest.approx(1 / 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        '"\\"' + '\\"' * 300_000,
        "/*" * 300_000,
        "//" * 300_000,
        "[" + "1,/**/" * 40_000,
        '{"a": 1' + " " * 600_000,
        '{"a":1' + "/" * 600_000,
        "\n" * 600_000 + "x",
        ("," + " " * 50) * 12_000,
        "[" + '"\\ud83d' * 80_000,
        '{"' + "k" * 600_000,
    ],
)
def test_hostile_text_is_parsed_in_linear_time(text: str) -> None:
    started = time.process_time()
    with suppress(JsoncSyntaxError):
        JsoncDocument("f", text)
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"\xff{}", 1, 1),
        (b'{\n"a": "\xe9"}', 2, 7),
        (b"\xff\xfe{\x00}\x00", 1, 1),
        ('{"é": "'.encode() + b"\xc3\x28", 1, 8),
    ],
)
def test_invalid_utf8_has_a_position(data: bytes, line: int, column: int) -> None:
    with pytest.raises(JsoncSyntaxError, match="UTF-8") as caught:
        decode_text(data)
    assert caught.value.position == (line, column)


def test_byte_order_mark_is_not_counted() -> None:
    document = JsoncDocument("f", decode_text(b'\xef\xbb\xbf{"a": 1}'))
    assert (document.value, document.position(("a",), of_key=True)) == ({"a": 1}, (1, 2))


def test_message_has_no_control_characters() -> None:
    with pytest.raises(JsoncSyntaxError) as caught:
        JsoncDocument("f", '{"a": \x1b[31mred}')
    assert "\x1b" not in str(caught.value)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",)), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@examples(60)
@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_value_is_that_of_the_standard_library(value: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert JsoncDocument("f", text).value == value


@examples(60)
@given(value=VALUES)
def test_comments_and_commas_do_not_change_the_value(value: object) -> None:
    text = json.dumps(value, indent=1).replace("\n", " // x\n/* , ] */")
    assert JsoncDocument("f", text).value == value


@examples(300)
@given(
    text=st.text(alphabet='{}[]",:/* \n\\u1e-truefalsn\x00é', max_size=30)
    | st.text(alphabet='[]{}",:1/* \n', max_size=14)
)
def test_any_text_is_a_value_or_an_error_with_a_position(text: str) -> None:
    try:
        value = JsoncDocument("f", text).value
    except JsoncSyntaxError as error:
        assert 1 <= error.position.line <= text.count("\n") + 1
    else:
        assert json.loads(json.dumps(value)) == value
