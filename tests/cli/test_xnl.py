"""`ostler xnl`: documents, formatted text and calls, from pipes and files."""

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from ostler.cli.xnl import main
from ostler.core.errors import UsageError

VECTORS = json.loads((Path(__file__).parents[1] / "data/xnl/vectors.json").read_text("utf-8"))
ODD = {"recommended", "recommended_value"}
GOOD = [case for case in VECTORS["parse"] if case["mode"] == "many" and "expect" in case and not case.keys() & ODD]
CALL = '<tool_call id="c1" lang="javascript" #>SysBuiltIn.read({ path: "a.txt" })</#>'


@pytest.mark.req("MD-6")
def test_parse_matches_the_vectors(ostler):
    text = "\n".join(case["input"] for case in GOOD)
    nodes = [node for case in GOOD for node in case["expect"]["nodes"]]
    done = ostler("xnl", "parse", stdin=text)
    assert (done.code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["nodes"] == nodes
    assert json.loads(ostler("xnl", "parse", stdin="").stdout) == {"nodes": [], "warnings": []}


def test_format(ostler):
    file = ostler.workspace / "a.xnl"
    file.write_text("\ufeff<box {n=1}   [ 1   2 ] >\n<!-- gone -->", encoding="utf-8")
    assert ostler("xnl", "format", file).stdout == "<box { n = 1 } [ 1 2 ]>\n"
    assert ostler("xnl", "format", "--pretty", "a.xnl").stdout == "<box {\n  n = 1\n} [\n  1\n  2\n]>\n"
    again = ostler("xnl", "format", "--pretty", stdin=file.read_text("utf-8-sig")).stdout
    assert ostler("xnl", "format", "--pretty", stdin=again).stdout == again


@pytest.mark.req("MD-6")
def test_calls(ostler):
    answer = f"I look.\n!unquote_start\n{CALL}\n!unquote_end\n!quote_start{CALL}!quote_end"
    done = ostler("xnl", "calls", stdin=answer)
    assert done.code == 0
    assert json.loads(done.stdout) == [{"id": "c1", "function": "SysBuiltIn.read", "arguments": {"path": "a.txt"}}]
    assert ostler("xnl", "calls", stdin="no calls").stdout == "[]\n"


def test_invalid_call_is_reported(ostler):
    done = ostler("xnl", "calls", stdin='!unquote_start<tool_call id="c2" #>x()</#>!unquote_end')
    assert done.code == 1
    assert json.loads(done.stdout)[0]["error"] == "INVALID_CALL"
    assert "c2: INVALID_CALL" in done.stderr
    assert "line 1, column" in done.stderr


@pytest.mark.req("MD-6")
def test_unclosed_block_is_located(ostler):
    good = '!unquote_start<tool_call id="c1" #>SysBuiltIn.read({})</#>!unquote_end'
    done = ostler("xnl", "calls", stdin=f"{good}\nAnd then:\n  !unquote_start\n{CALL}\n")
    assert done.code == 1
    assert [call["id"] for call in json.loads(done.stdout)] == ["c1"]
    assert done.stderr.startswith("ostler: standard input:3:3: UNEXPECTED_EOF: the block is not closed")
    assert ostler("xnl", "calls", stdin=f"{good} and !quote_start of !unquote_start").code == 0


@pytest.mark.parametrize("what", ["parse", "format"])
def test_parse_error_is_located(ostler, what):
    done = ostler("xnl", what, stdin="<a>\n<b x=bare>")
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr.startswith("ostler: standard input:2:")
    assert "INVALID_LITERAL" in done.stderr
    assert "Traceback" not in done.stderr


def test_unreadable_input_is_a_usage_error(ostler):
    (ostler.workspace / "bad.xnl").write_bytes(b"\xff\xfe<")
    for arguments in (["parse", "none.xnl"], ["parse", "bad.xnl"], ["parse", "."], ["draw"]):
        done = ostler("xnl", *arguments)
        assert (done.code, done.stdout) == (2, "")
        assert done.stderr.startswith("ostler: ")


def test_invalid_utf8_from_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"\xff\xfe<")))
    with pytest.raises(UsageError, match="standard input is not UTF-8"):
        main(["parse"])
