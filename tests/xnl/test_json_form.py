"""The JSON form of trees, errors and calls, and the exports of the package."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ostler.xnl
from ostler.xnl import BadCall, CallError, FoundCall, XnlDocument, XnlError, calls, format, from_json, parse, to_json

pytestmark = pytest.mark.req("MD-6")

VECTORS = json.loads((Path(__file__).parents[1] / "data/xnl/vectors.json").read_text(encoding="utf-8"))
TREES = [vector["expect"] for vector in VECTORS["parse"] if "nodes" in vector.get("expect", {})]


@pytest.mark.parametrize(
    "tree", TREES, ids=lambda tree: format(XnlDocument([from_json(node) for node in tree["nodes"]]))
)
def test_json_nodes_round_trip(tree):
    nodes = [from_json(node) for node in tree["nodes"]]
    assert to_json(XnlDocument(nodes))["nodes"] == tree["nodes"]


def test_shapes():
    assert to_json(FoundCall("a", "A.b", {"c": 1})) == {"id": "a", "function": "A.b", "arguments": {"c": 1}}
    bad = {"error": "MISSING_ID", "message": "m", "id": None, "function": "tool_call"}
    assert to_json(BadCall("MISSING_ID", "m")) == bad
    error = {"code": "UNEXPECTED_TOKEN", "message": "m", "position": 3, "line": 2, "column": 2}
    assert to_json(XnlError("UNEXPECTED_TOKEN", "m", "a\nbc", 3)) == error
    assert to_json(CallError("m"))["code"] == "INVALID_CALL"
    assert to_json(parse("<a>")) == {"nodes": [{"kind": "DataElement", "tag": "a", "metadata": {}}], "warnings": []}


@pytest.mark.parametrize(
    "plain",
    [
        None,
        7,
        "text",
        [],
        {},
        {"kind": "Other", "tag": "a", "metadata": {}},
        {"kind": "Comment", "value": 1},
        {"kind": "DataElement", "metadata": {}},
        {"kind": "DataElement", "tag": 1, "metadata": {}},
        {"kind": "DataElement", "tag": "a"},
        {"kind": "DataElement", "tag": "a", "metadata": "text"},
        {"kind": "DataElement", "tag": "a", "metadata": {}, "attributes": 1},
        {"kind": "DataElement", "tag": "a", "metadata": {}, "body": 1},
        {"kind": "DataElement", "tag": "a", "metadata": {}, "extend": {"children": {"b": 1}, "order": ["b"]}},
        {"kind": "TextElement", "tag": "a", "metadata": {}},
        {"kind": "TextElement", "tag": "a", "metadata": {}, "text": "t", "textMarker": 1},
    ],
)
def test_other_json_is_an_error(plain):
    with pytest.raises(XnlError) as caught:
        from_json(plain)
    assert caught.value.code == "INVALID_CONTENT"


def test_deep_json_is_an_error():
    plain = {"kind": "DataElement", "tag": "a", "metadata": {}}
    for _ in range(5000):
        plain = {"kind": "DataElement", "tag": "a", "metadata": {}, "body": [plain]}
    with pytest.raises(XnlError):
        from_json(plain)


def test_exports():
    assert format(parse("<a [1]>"), pretty=True) == "<a [\n  1\n]>"
    assert calls("nothing") == []
    assert all(getattr(ostler.xnl, name) for name in ostler.xnl.__all__)
    with pytest.raises(AttributeError):
        ostler.xnl.nothing  # noqa: B018


def test_importing_the_package_imports_no_modules():
    code = "import sys, ostler.xnl; print([name for name in sys.modules if name.startswith('ostler.xnl.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
