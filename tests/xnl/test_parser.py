"""The parser with the test vectors of the notation, and with further cases."""

import json
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.xnl.errors import XnlError
from ostler.xnl.json_form import to_json
from ostler.xnl.parser import parse
from ostler.xnl.tree import MAX_DEPTH, DataElement, TextElement

pytestmark = pytest.mark.req("MD-6")

VECTORS = json.loads((Path(__file__).parents[1] / "data/xnl/vectors.json").read_text(encoding="utf-8"))["parse"]
# Error codes that the vectors recommend in a note instead of the reference's code.
RECOMMENDED_CODES = {"eof in object literal": "UNEXPECTED_EOF"}


def parse_error(text):
    with pytest.raises(XnlError) as caught:
        parse(text)
    return caught.value


def value(text):
    return parse(f"<a v={text}>").nodes[0].metadata["v"]


def text_of(body, marker=""):
    return parse(f"<t #{marker}>{body}</#{marker}>").nodes[0].text


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector):
    if "recommended" in vector:
        assert to_json(parse(vector["input"])) == vector["recommended"]
    elif "recommended_value" in vector:
        assert parse(vector["input"]).nodes[0].metadata["s"] == vector["recommended_value"]
    elif "expect" in vector:
        expected = dict(vector["expect"])
        if vector["mode"] == "single":
            expected["nodes"] = [expected.pop("node")]
        assert to_json(parse(vector["input"])) == expected
    else:
        error = parse_error(vector["input"])
        expected = vector["error"] | {"code": RECOMMENDED_CODES.get(vector["name"], vector["error"]["code"])}
        assert {"code": error.code, "line": error.line, "column": error.column} == expected


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("<", "UNEXPECTED_TOKEN", 1, 2),
        ("<a", "UNEXPECTED_EOF", 1, 3),
        ("<a x", "UNEXPECTED_EOF", 1, 5),
        ("<a x=", "UNEXPECTED_EOF", 1, 6),
        ("<a x=[1", "UNEXPECTED_EOF", 1, 8),
        ('<a x="s', "UNEXPECTED_EOF", 1, 8),
        ('<a x="s\\', "UNEXPECTED_EOF", 1, 9),
        ("<a ( <b>", "UNEXPECTED_EOF", 1, 9),
        ("<a>\n <!-- open", "UNEXPECTED_EOF", 2, 2),
        ("< a>", "UNEXPECTED_TOKEN", 1, 2),
        ("<a></a>", "UNEXPECTED_TOKEN", 1, 5),
        ("<a.b>", "UNEXPECTED_TOKEN", 1, 3),
        ("<1a>", "UNEXPECTED_TOKEN", 1, 2),
        ("<a x:1>", "UNEXPECTED_TOKEN", 1, 6),
        ("<a x=1, y=2>", "UNEXPECTED_TOKEN", 1, 7),
        ("<a [1, 2]>", "INVALID_LITERAL", 1, 6),
        ("<a {x = 1, y = 2}>", "UNEXPECTED_TOKEN", 1, 10),
        ("<a {1 = 2}>", "UNEXPECTED_TOKEN", 1, 5),
        ("<a {} {}>", "INVALID_CONTENT", 1, 7),
        ("<a [] #>t</#>", "INVALID_CONTENT", 1, 8),
        ("<a x=<b>>", "INVALID_LITERAL", 1, 6),
        ("<a {x = <b>}>", "INVALID_LITERAL", 1, 9),
        ("<a x=+>", "INVALID_LITERAL", 1, 6),
        ("<a x=--1>", "INVALID_LITERAL", 1, 6),
        ("<a x=1e+>", "INVALID_LITERAL", 1, 9),
        ("<a x=1e999>", "INVALID_LITERAL", 1, 11),
        ("<t #\n>x</#>", "UNEXPECTED_TOKEN", 2, 1),
        ("<t #1m>x</#1m>", "UNEXPECTED_TOKEN", 1, 6),
        ("<t #>x</#", "UNEXPECTED_TOKEN", 1, 7),
        ("<t #>x</# >", "UNEXPECTED_TOKEN", 1, 7),
        ("<t #>x</#m>", "MISMATCHED_TAG", 1, 7),
        ("<t #m>x</#>", "MISMATCHED_TAG", 1, 8),
        ("<t #m>x", "MISMATCHED_TAG", 1, 7),
        ("\ufeff<a>", "UNEXPECTED_TOKEN", 1, 2),
        ("<a\u00a0x=1>", "UNEXPECTED_TOKEN", 1, 3),
    ],
)
def test_error(text, code, line, column):
    error = parse_error(text)
    assert (error.code, error.line, error.column) == (code, line, column)
    assert error.message
    assert to_json(error)["position"] == error.position


def test_position_counts_utf16_units():
    error = parse_error('<a x="😀"\n y="😀" z>')
    assert (error.position, error.line, error.column) == (20, 2, 11)
    assert parse_error("😀").column == 2, "one unit after the first surrogate, by convention"


@pytest.mark.parametrize("word", ["trueish", "true1", "false-x", "null_", "True", "NULL", "truefalse", "undefined"])
def test_keywords_end_at_a_word_boundary(word):
    for text in (f"<a x={word}>", f"<a [ 1 {word} ]>", f"<a {{ x = {word} }}>"):
        error = parse_error(text)
        assert error.code == "INVALID_LITERAL"
        assert error.position == text.index(word) + len(word)
        assert word in error.message


def test_keyword_may_touch_punctuation():
    assert to_json(parse('<a [true"s"null[false]]>'))["nodes"][0]["body"] == [True, "s", None, [False]]


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("'it'", "it"),
        ('"a\nb"', "a\nb"),
        ('"a\r\nb"', "a\r\nb"),
        (r'"\n\t\r\"\'\\"', "\n\t\r\"'\\"),
        (r'"\u0041\x\/"', "u0041x/"),
        ('"\\\n"', "\n"),
        ('"<!-- text -->"', "<!-- text -->"),
        ("007", 7),
        ("-0", 0),
        ("-12.50e+1", -125),
        ("9007199254740993", 9007199254740993),
        ("1e20", 1e20),
        ("1e-400", 0),
        ("{}", {}),
        ("[]", []),
        ("{ a = [ { b = null } ] 'c d' = -1 a = 2 }", {"a": 2, "c d": -1}),
    ],
)
def test_value(literal, expected):
    read = value(literal)
    assert read == expected
    assert type(read) is type(expected)


def test_long_runs_of_digits_do_not_crash():
    assert value("0" * 10_000 + "7") == 7
    assert value("0." + "3" * 10_000) == 0.3333333333333333
    assert parse_error(f"<a v={'9' * 10_000}>").code == "INVALID_LITERAL"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("\n    a\n      b\n    ", "a\n  b\n"),
        ("x\n  a\n  ", "x\na\n"),
        ("  x\n  a\n  ", "x\na\n"),
        ("\n\n  a\n\n  ", "\na\n\n"),
        ("\n \ta\n\t b\n \t", "a\n\t b\n"),
        ("\r\n  a\r\n  ", "\r\na\r\n"),
        ("\n  a\n", "\n  a\n"),
        ("\n  a\n  b ", "\n  a\n  b "),
        ("   ", "   "),
        ("", ""),
        ("\n  ", ""),
        ("\n  a\r  ", "\n  a\r  "),
        ("a <!-- text --> b", "a <!-- text --> b"),
        (r"no \n escapes \ ", r"no \n escapes \ "),
        ("</# > </#x> </", "</# > </#x> </"),
    ],
)
def test_text(body, expected):
    assert text_of(body) == expected


def test_marker_protects_the_body():
    assert text_of("a </#> </#m1> </#m </#mm> b", "m") == "a </#> </#m1> </#m </#mm> b"


def test_text_element_has_metadata_and_attributes():
    (node,) = parse("<t a=1 {b='zh'}#m-1>x</#m-1>").nodes
    assert node == TextElement("t", {"a": 1}, "x", {"b": "zh"}, "m-1")


def test_comments_are_allowed_wherever_whitespace_is():
    text = "<!--0--><a<!--1-->x<!--2-->=<!--3-->1<!--4-->{<!--5-->}<!--6-->[<!--7-->]<!-- > -- -->(<!--8-->)>"
    node = to_json(parse(text))["nodes"][0]
    assert node["metadata"] == {"x": 1}
    assert (node["attributes"], node["body"], node["extend"]["order"]) == ({}, [], [])


def test_duplicate_children_warn_once_for_each_replacement():
    document = parse("<p ( <k {n=1}> <q ( <z> <z> )> <k {n=2}> <k {n=3}> )>")
    assert [(w.parent_name, w.child_name) for w in document.warnings] == [("q", "z"), ("p", "k"), ("p", "k")]
    assert document.nodes[0].extend.order == ["q", "k"]
    assert document.nodes[0].extend.children["k"].attributes == {"n": 3}


@pytest.mark.parametrize("nest", [("<a [", "]>"), ("<a (", ")>"), ("[", "]"), ("{a=", "}")])
def test_nesting_is_limited(nest):
    opener, closer = nest
    prefix, core, suffix = ("", "<z>", "") if opener.startswith("<") else ("<a x=", "1", ">")
    deep = 100_000
    assert parse_error(prefix + opener * deep + closer * deep + suffix).code == "INVALID_CONTENT"
    allowed = MAX_DEPTH - 1
    document = parse(prefix + opener * allowed + core + closer * allowed + suffix)
    assert isinstance(document.nodes[0], DataElement)
    assert to_json(document)


def test_error_message_is_short():
    assert len(parse_error(f"<a x={'w' * 100_000}>").message) < 200
    assert len(parse_error(f"<{'w' * 100_000} #>").message) < 200


TOKENS = (
    "<a |<b|>|{|}|[|]|(|)|#|#m>|#>|</#>|</#m>|x=| |\n  |\"|'|\\|1|-2.5|1e|true|null|x"
    "|<!--|-->|<c>|=|😀|\r|,|/|\x00|\ud800"
)


@examples(250)
@given(st.lists(st.sampled_from(TOKENS.split("|")), max_size=30).map("".join))
def test_any_text_is_a_tree_or_an_error(text):
    try:
        parse(text)
    except XnlError as error:
        assert 0 <= error.position <= len(text.encode("utf-16-le", "surrogatepass")) // 2
        assert error.line >= 1
        assert error.column >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["<a>", "<!---->", "<a #>x\n  </#>", '<a x="\\n\\n">', "<a #m></#></#m>", "<a x=[1 1 1]>", "<a ( <b> <b> )>"],
)
def test_time_is_linear(unit):
    def seconds(times):
        started = process_time()
        parse(unit * times)
        return process_time() - started

    small = min(seconds(1000) for _ in range(3))
    assert seconds(8000) < 8 * 5 * small + 0.05
