"""The writer with the test vectors of the notation, and round trips through the parser."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.xnl.errors import XnlError
from ostler.xnl.json_form import from_json
from ostler.xnl.parser import parse
from ostler.xnl.tree import MAX_DEPTH, Comment, DataElement, Extend, TextElement, XnlDocument
from ostler.xnl.writer import format

pytestmark = pytest.mark.req("MD-6")

VECTORS = json.loads((Path(__file__).parents[1] / "data/xnl/vectors.json").read_text(encoding="utf-8"))
PARSE_VECTORS = [vector for vector in VECTORS["parse"] if "compact" in vector and "recommended_value" not in vector]
STYLES = [{"pretty": False}, {"pretty": True}, {"pretty": True, "indent": ""}, {"pretty": True, "indent": "\t"}]

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,5}", fullmatch=True)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.sampled_from("ab \"'\\\n\r\t<!->#/{}[]()=é😀\x00"), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | names, inner, max_size=3),
    max_leaves=6,
)
fields = st.dictionaries(texts | names, values, max_size=3)
bodies = st.lists(
    st.sampled_from(
        ["</#>", "</#m>", "</#", "</#text-1>", "a", "  ", "\n", "\r\n", "\t", "<!-- c -->", "<t #>", "\\n"]
    ),
    max_size=8,
).map("".join)
# A text cannot end with blanks after a newline.
valid_bodies = bodies.filter(lambda body: "\n" not in body or body[-1] not in " \t")
text_elements = st.builds(TextElement, names, fields, valid_bodies, st.none() | fields, st.none() | names)


def extends(children):
    return st.lists(children, max_size=3, unique_by=lambda child: child.tag).map(
        lambda items: Extend({child.tag: child for child in items}, [child.tag for child in items])
    )


elements = st.recursive(
    text_elements | st.builds(DataElement, names, fields, st.none() | fields),
    lambda inner: st.builds(
        DataElement,
        names,
        fields,
        st.none() | fields,
        st.none() | st.lists(values | inner, max_size=3),
        st.none() | extends(inner),
    ),
    max_leaves=4,
)


def parse_one(text):
    (node,) = parse(text).nodes
    return node


@pytest.mark.parametrize("vector", PARSE_VECTORS, ids=lambda vector: vector["name"])
def test_parse_vector_is_written_again(vector):
    document = parse(vector["input"])
    assert format(document) == vector["compact"]
    assert format(document, pretty=True) == vector["pretty2"]


@pytest.mark.parametrize("vector", VECTORS["stringify"], ids=lambda vector: vector["name"])
def test_stringify_vector(vector):
    node = from_json(vector["node"])
    assert format(node) == vector["compact"]
    assert format(node, pretty=True) == vector["pretty2"]


@examples(60)
@given(nodes=st.lists(elements, max_size=2))
def test_written_trees_can_be_parsed(nodes):
    for style in STYLES:
        written = format(XnlDocument(nodes), **style)
        read = parse(written)
        assert [without_markers(node) for node in read.nodes] == [without_markers(node) for node in nodes]
        assert format(read, **style) == written, "stable after one round"


def without_markers(item):
    """Return a comparable form without text markers, which the writer may change."""
    if isinstance(item, TextElement):
        return ("text", item.tag, item.metadata, item.attributes, item.text)
    if not isinstance(item, DataElement):
        return item
    body = None if item.body is None else [without_markers(inner) for inner in item.body]
    extend = item.extend and [without_markers(item.extend.children[tag]) for tag in item.extend.order]
    return ("data", item.tag, item.metadata, item.attributes, body, extend)


@pytest.mark.parametrize(
    ("text", "preferred", "written"),
    [
        ("x", None, "<t #>x</#>"),
        ("x", "c1", "<t #c1>x</#c1>"),
        ("a </#m> </#", None, "<t #>a </#m> </#</#>"),
        ("a </#> b", None, "<t #text-1>a </#> b</#text-1>"),
        ("</#> </#text-1> </#text-2", None, "<t #text-3></#> </#text-1> </#text-2</#text-3>"),
        ("</#c1>", "c1", "<t #c1-1></#c1></#c1-1>"),
        ("x", "01J", "<t #_01J>x</#_01J>"),
        ("x", "call 7/é", "<t #call_7__>x</#call_7__>"),
        ("x", "-a", "<t #_-a>x</#_-a>"),
        ("x", "", "<t #>x</#>"),
    ],
)
def test_marker_is_a_name_that_does_not_occur_in_the_text(text, preferred, written):
    assert format(TextElement("t", {}, text, text_marker=preferred)) == written
    assert parse_one(written).text == text


def test_many_used_markers_are_fast():
    text = "".join(f"</#m-{number}>" for number in range(20_000)) + "</#m>"
    written = format(TextElement("t", {}, text, text_marker="m"))
    assert written.startswith("<t #m-20000>")
    assert parse_one(written).text == text


def test_blanks_after_the_last_newline_do_not_dedent():
    written = format(TextElement("t", {}, "  a\n  b\n  "))
    assert parse_one(written).text == "  a\n  b\n"
    assert parse_one(format(TextElement("t", {}, "  "))).text == "  "


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1e3, "1000"),
        (1e21, "1e+21"),
        (-2.5e-7, "-2.5e-7"),
        (0.00001, "0.00001"),
        (-0.0000012, "-0.0000012"),
        (-0.0, "0"),
        (2**64, "18446744073709551616"),
        (float("inf"), "null"),
        (float("nan"), "null"),
        (True, "true"),
    ],
)
def test_number(number, written):
    assert format(DataElement("a", {"n": number})) == f"<a n={written}>"


def test_comment_cannot_end_early():
    written = format(XnlDocument([Comment("a --> <b>"), DataElement("c", {})]))
    assert [node.tag for node in parse(written).nodes] == ["c"]


def test_single_node_is_written_as_its_node():
    assert format(DataElement("a", {"b c": "d"})) == '<a "b c"="d">'


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "tree",
    [
        DataElement("not a name", {}),
        DataElement("", {}),
        DataElement("a\n", {}),
        DataElement("a", {"n": 10**400}),
        DataElement("a", {"n": 10**5000}),
        DataElement("a", {"n": nested(MAX_DEPTH + 1)}),
        DataElement("a", {}, {"n": nested(100_000)}),
    ],
    ids=["space", "empty", "newline", "large", "huge", "deep", "very deep"],
)
def test_invalid_trees_are_errors(tree):
    with pytest.raises(XnlError):
        format(tree)


@pytest.mark.parametrize("pretty", [False, True])
def test_deepest_writable_tree_can_be_parsed(pretty):
    for tree in (
        DataElement("a", {"n": nested(MAX_DEPTH)}),
        DataElement("a", {}, {"n": nested(MAX_DEPTH - 1)}),
        DataElement("a", {}, body=[nested(MAX_DEPTH - 1)]),
    ):
        assert parse_one(format(tree, pretty=pretty)) == tree
