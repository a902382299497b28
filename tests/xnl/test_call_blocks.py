"""Calls in an assistant's text, and the block with their results."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.xnl.call_blocks import BadCall, FoundCall, calls, read_block, results_block
from ostler.xnl.json_form import to_json
from ostler.xnl.parser import parse
from ostler.xnl.scanner import scan

pytestmark = pytest.mark.req("MD-6")

VECTORS = json.loads((Path(__file__).parents[1] / "data/xnl/vectors.json").read_text(encoding="utf-8"))
CASES = VECTORS["toolcall_extraction"]["cases"]


def tool_call(id, code="A.b()", lang=' lang="javascript"'):
    return f'<tool_call id="{id}"{lang} #>{code}</#>'


def block(*parts):
    return "\n".join(["!unquote_start", *parts, "!unquote_end"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vector(case):
    entries = [to_json(entry) for entry in calls(case["text"])]
    if isinstance(case["recommended"], list):
        assert entries == case["recommended"]
    else:
        assert [entry["error"] for entry in entries] == [case["recommended"]["error"]]


def test_calls_of_several_blocks_are_in_order():
    text = "one " + block(tool_call("a"), tool_call("b", "A.c({x: 1})")) + " two " + block(tool_call("c"))
    assert calls(text) == [FoundCall("a", "A.b", {}), FoundCall("b", "A.c", {"x": 1}), FoundCall("c", "A.b", {})]


def test_repeated_id_replaces_the_earlier_call():
    text = block(tool_call("a", "A.old()"), tool_call("b")) + block(tool_call("a", "A.new()"))
    assert calls(text) == [FoundCall("a", "A.new", {}), FoundCall("b", "A.b", {})]


def test_invalid_repetition_replaces_a_valid_call():
    (entry,) = calls(block(tool_call("a"), tool_call("a", "oops(")))
    assert isinstance(entry, BadCall)
    assert entry.id == "a"


def test_invalid_block_does_not_affect_others():
    text = block(tool_call("a")) + block(tool_call("b"), "stray <") + block(tool_call("c"))
    first, bad, last = calls(text)
    assert (first.id, last.id) == ("a", "c")
    assert (bad.error, bad.id, bad.function) == ("UNEXPECTED_TOKEN", None, "tool_call")
    assert "again" in bad.message


def test_two_invalid_blocks_are_two_entries():
    assert len(calls(block("x") + block("x"))) == 2


def test_invalid_call_keeps_its_id_and_does_not_affect_others():
    good, bad = calls(block(tool_call("a"), tool_call("b", "SysBuiltIn.bash({command: cmd})")))
    assert good == FoundCall("a", "A.b", {})
    assert (bad.id, bad.error, bad.function) == ("b", "INVALID_CALL", "SysBuiltIn.bash")
    assert "cmd" in bad.message


@pytest.mark.parametrize(
    ("element", "error", "id"),
    [
        ('<tool_call lang="javascript" #>A.b()</#>', "MISSING_ID", None),
        ('<tool_call id="" #>A.b()</#>', "MISSING_ID", None),
        ("<tool_call id=null #>A.b()</#>", "MISSING_ID", None),
        ("<tool_call id=true #>A.b()</#>", "MISSING_ID", None),
        ('<tool_call id="x" lang="python" #>A.b()</#>', "UNSUPPORTED_LANG", "x"),
        ('<tool_call id="x" { name = "A.b" }>', "INVALID_CONTENT", "x"),
        ('<tool_call id="x" #></#>', "INVALID_CALL", "x"),
    ],
)
def test_invalid_calls_are_entries(element, error, id):
    (entry,) = read_block(element)
    assert (entry.error, entry.id) == (error, id)
    assert entry.message


@pytest.mark.parametrize(
    ("element", "id"),
    [
        ('<tool_call id="x" #>A.b()</#>', "x"),
        ("<tool_call id=7 #>A.b()</#>", "7"),
        ('<tool_call {id="x" lang="javascript"} #>A.b()</#>', "x"),
        ('<tool_call id="x" #end>{"name": "A.b", "arguments": {}}</#end>', "x"),
    ],
)
def test_valid_calls(element, id):
    assert read_block(element) == [FoundCall(id, "A.b", {})]


@pytest.mark.parametrize(
    "text",
    [
        tool_call("a"),
        "!unquote_start" + tool_call("a"),
        tool_call("a") + "!unquote_end",
        block('<tool_call lang="javascript" #>A.b()</#>'),
        "!quote_start" + block(tool_call("a")) + "!quote_end",
        "!quote_start" + block(tool_call("a")),
        block("<!-- " + tool_call("a") + " -->"),
        block("<note #>" + tool_call("a").replace("</#>", "") + "</#>"),
        block("<tool_resp id='a' #>A.b()</#>"),
        block(""),
        "",
    ],
)
def test_no_call(text):
    assert calls(text) == []


def test_results_block():
    assert results_block([("a", "one\ntwo"), ("b", "")]) == (
        '!unquote_start\n<tool_resp id="a" #a>one\ntwo</#a>\n<tool_resp id="b" #b></#b>\n!unquote_end'
    )


@examples(100)
@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=8),
            st.lists(st.sampled_from(["</#a>", "</#>", "</#a-1>", "x", "<tool_resp id='z' #>"])).map("".join),
        ),
        max_size=3,
    )
)
def test_output_cannot_end_its_element(results):
    results = [("a", "</#a>"), *results]
    (part,) = scan(results_block(results))
    assert [(node.metadata["id"], node.text) for node in parse(part.text).nodes] == results


FRAGMENTS = [
    "!unquote_start",
    "!unquote_end",
    "!quote_start",
    "!quote_end",
    tool_call("a"),
    '<tool_call id="b" #>',
    "</#>",
]


@examples(200)
@given(st.lists(st.sampled_from([*FRAGMENTS, "A.b({", "})", "<", ">", "x", "\n"]), max_size=15).map("".join))
def test_calls_never_raises(text):
    for entry in calls(text):
        assert json.dumps(to_json(entry))
