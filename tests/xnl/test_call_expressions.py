"""Call expressions: plain data is parsed as in JavaScript, anything else is rejected."""

import json
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.xnl.call_expressions import MAX_LENGTH, CallExpression, parse_call
from ostler.xnl.errors import CallError
from ostler.xnl.js_literals import MAX_DEPTH

pytestmark = pytest.mark.req("MD-6")

VECTORS = json.loads((Path(__file__).parents[1] / "data/xnl/vectors.json").read_text(encoding="utf-8"))
CASES = VECTORS["call_expressions"]["cases"]


def argument(literal):
    return parse_call(f"A.b({{ v: {literal} }})").arguments["v"]


def parse_error(code):
    with pytest.raises(CallError) as caught:
        parse_call(code)
    assert caught.value.code == "INVALID_CALL"
    return caught.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vector(case):
    if case["recommended"] == "accept":
        assert parse_call(case["code"]) == CallExpression(case["expect"]["function"], case["expect"]["arguments"])
    else:
        parse_error(case["code"])


@pytest.mark.parametrize(
    "code",
    [
        "A.b({v:1})",
        " \n\t\ufeff\u00a0A.b({v:1}) \n",
        "A . b\n(\n{ v : 1 } )",
        "/* x */ A./* y */b({v:1}) // z",
        "// first\nA.b({v:1});",
        "A.b({v:1}) ; // end",
        "return A.b({v:1});",
        "await\nA.b({v:1})",
        "await/**/A.b({v:1})",
        '{"name": "A.b", "arguments": {"v": 1}}',
        '\n{"arguments": {"v": 1}, "id": "x", "name": "A.b"}\n',
    ],
)
def test_shape(code):
    assert parse_call(code) == CallExpression("A.b", {"v": 1})


@pytest.mark.parametrize(
    ("code", "function"),
    [("$x._y()", "$x._y"), ("名.前()", "名.前"), ("awaited.b()", "awaited.b"), ("A.return()", "A.return")],
)
def test_names(code, function):
    assert parse_call(code) == CallExpression(function, {})


def test_json_without_arguments():
    assert parse_call('{"name": "A.b"}') == CallExpression("A.b", {})


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("'a\"b'", 'a"b'),
        (r'"\b\f\v\0\x7e\u00e9\u{1f600}\u{0000041}\q\/"', "\b\f\v\0~é😀Aq/"),
        (r'"\033[0m\7\08\8"', "\x1b[0m\x07\x0088"),
        (r'"\uD83D\uDE00"', "😀"),
        (r'"\uD83D!"', "\ufffd!"),
        (r'"\uD83D" + "\uDE00"', "😀"),
        ('"a\\\nb\\\r\nc\\\u2028d"', "abcd"),
        ('"a\u2028b"', "a\u2028b"),
        ("`a\r\nb\rc`", "a\nb\nc"),
        (r"`$ $$ \${x} \` \0`", "$ $$ ${x} ` \0"),
        ("'a' + /* c */ `b`\n + \"c\"", "abc"),
        ("''", ""),
        ("0", 0),
        ("-1", -1),
        ("+ 1", 1),
        ("- /* c */ 2", -2),
        (".5", 0.5),
        ("5.", 5),
        ("5.e1", 50),
        ("1_000.2_5", 1000.25),
        ("1e3", 1000),
        ("2E-2", 0.02),
        ("0xFf", 255),
        ("-0x1_0", -16),
        ("0o17", 15),
        ("0B11", 3),
        ("12345678901234567890", 12345678901234567890),
        ("true", True),
        ("false", False),
        ("null", None),
        ("[]", []),
        ("[1, [2,], {a: 3}, ]", [1, [2], {"a": 3}]),
        ("[undefined, 1]", [None, 1]),
        ("{}", {}),
        ("{a: undefined}", {}),
        ("{a: 1, a: undefined}", {}),
        ("{a: 1\n b: 2 // c\n c: 3 /* \n */ d: 4\n, e: 5}", {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}),
        ("{a: 'x'\n b: 'y'\n}", {"a": "x", "b": "y"}),
        (
            "{1: 1, 0x10: 2, 1.50: 3, .5: 4, 1e-7: 5, 1e21: 6}",
            {"1": 1, "16": 2, "1.5": 3, "0.5": 4, "1e-7": 5, "1e+21": 6},
        ),
        ("{'a b': 1, \"\": 2, $: 3, 键: 4, function: 5}", {"a b": 1, "": 2, "$": 3, "键": 4, "function": 5}),
    ],
)
def test_literal(literal, expected):
    read = argument(literal)
    assert read == expected
    assert type(read) is type(expected)


INVALID_LITERALS = {
    "names": ["x", "x.y", "f()", "process.env", "this", "NaN", "Infinity", "-Infinity", "True", "true1", "_1"],
    "functions": ["new X()", "() => 1", "function () {}", "async () => 1", "class {}", "{x() {}}", "{get x() {}}"],
    "operators": ["1 + 1", "1 + 'a'", "!0", "~1", "-'1'", "--1", "typeof 1", "void 0", "a ? b : c", "1 || 2", "(1)"],
    "sums": ["'a' + x", "'a' + 1", "'a' + [1]", "'a' 'b'", "'a'.length", "`a` `b`"],
    "numbers": ["1n", "017", "00", "1_", "1__0", "0x", "0xg", "1e", "1.5.2", "3px", "1e999", "9" * 400],
    "large": ["0x" + "f" * 400],
    "arrays": ["[1 2]", "[1\n2]", "[,]", "[1,,2]", "[...x]", "[1"],
    "objects": ["{...x}", "{[x]: 1}", "{x}", "{a: 1 b: 2}", "{,}", "{a: 1,, b: 2}", "{a: 1", "{a: 1, b = 2}"],
    "keys": ["{a 1}", "{a: }", "{a = 1}", "{`a`: 1}", "{-1: 1}", "{a.b: 1}", "{\\u0061: 1}"],
    "lines": ["{a: 'x'\n.b: 1}", "{a: 1\n+ 2}", "{a: 'x'\n[0]: 1}"],
    "strings": ['"open', "'a\nb'", "'a\rb'", "`open", '"\\', "`${x}`"],
    "escapes": [r'"\x4"', r'"\u12"', r'"\u{110000}"', r'"\u{}"', r"`\1`", r"`\01`", r"`\8`"],
    "other": ["/re/g", "1 /* open", "1 /", "#x", "@x", "<!-- 1", ""],
}


@pytest.mark.parametrize("literal", [literal for group in INVALID_LITERALS.values() for literal in group])
def test_invalid_literal(literal):
    error = parse_error(f"A.b({{ v: {literal} }})")
    assert error.message
    assert error.line >= 1


INVALID_SHAPES = {
    "unfinished": ["", " // only a comment", "A", "A.b", "A.b(", "A.b({}", "await", "/* open", "A.b({}) /* open"],
    "names": ["b({})", "A.b.c({})", "A?.b({})", "A['b']({})", "A.b`x`", "1.b()", "A.1()", '"A".b()', "await.b()"],
    "arguments": ["A.b({}, {})", "A.b({},)", "A.b(,)", "A.b(1)", "A.b(null)", "A.b(undefined)", "A.b(x)", "A.b(...x)"],
    "around": ["(A.b({}))", "A.b(({}))", "A.b({})()", "A.b({}).c", "A.b({}) + 1", "```\nA.b({})\n```"],
    "several": ["A.b({}) A.b({})", "A.b({});;", "A.b({}); A.b({})", "A.b({})\nA.c({})"],
    "words": ["await await A.b({})", "await return A.b({})", "new A.b({})", "let x = A.b({})"],
    "json": ["{}", "{} x", '{"name": 1}', '{"name": ""}', '{"name": "A.b"};x', '{"name": "A.b", "arguments": []}'],
}


@pytest.mark.parametrize("code", [code for group in INVALID_SHAPES.values() for code in group])
def test_invalid_shape(code):
    assert parse_error(code).message


def test_error_has_line_and_column():
    error = parse_error('A.b({\n  ok: "😀",\n  v: process.env\n})')
    assert (error.line, error.column) == (3, 6)
    assert "process" in error.message


def test_depth_and_size_are_limited():
    allowed = MAX_DEPTH - 1
    assert argument("[" * allowed + "]" * allowed)
    for opener in ("[", "{a:"):
        assert "deep" in parse_error("A.b({v: " + opener * 100_000).message
    assert "characters" in parse_error("A.b()" + " " * MAX_LENGTH).message


def test_message_stays_short():
    assert len(parse_error(f"A.b({{v: {'x' * 100_000}}})").message) < 300


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@examples(100)
@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4), st.booleans())
def test_any_json_is_accepted(arguments, escaped):
    written = json.dumps(arguments, ensure_ascii=escaped)
    assert parse_call(f"A.b({written})").arguments == arguments
    assert parse_call(f'{{"name": "A.b", "arguments": {written}}}').arguments == arguments


TOKENS = (
    "A.b(|{|}|)|[|]|,|:|a|'|\"|`|\\|\\u|\\u{|${|1|0x|.|-|+|e5|_|\n|//|/*|*/|;"
    "|await |true|undefined|\u2028|😀|\x00|\ud800|x()"
)


@examples(250)
@given(st.lists(st.sampled_from(TOKENS.split("|")), max_size=25).map("".join), st.booleans())
def test_any_code_is_a_call_or_an_error(code, wrapped):
    try:
        call = parse_call(f"A.b({{v: {code}}})" if wrapped else code)
    except CallError:
        return
    json.dumps(call.arguments).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["1,", "'',", "/**/", "{a:1\n},", "'\\n'+'',", "'\\u0041',", "//\n", "[],", "`$`,", "0x1,"]
)
def test_time_is_linear(unit):
    def seconds(times):
        started = process_time()
        parse_call("A.b({v: [" + unit * times + "]})")
        return process_time() - started

    small = min(seconds(1000) for _ in range(3))
    assert seconds(8000) < 8 * 5 * small + 0.05
