"""Front matter of Markdown files, valid and invalid."""

import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.knowledge.frontmatter import MAX_DEPTH, MAX_HEAD_LENGTH, parse_markdown

VALID = {
    "plain": ("name: pdf\ndescription: Reads PDF files.", {"name": "pdf", "description": "Reads PDF files."}),
    "quoted": ("a: \"one: two\"\nb: 'x # y'", {"a": "one: two", "b": "x # y"}),
    "escaped quotes": (r'a: "say \"hi\""', {"a": 'say "hi"'}),
    "comment": ("# hello\na: b # c", {"a": "b"}),
    "list": ("tools:\n  - read\n  - grep", {"tools": ["read", "grep"]}),
    "flow": ("tools: [read, grep]", {"tools": ["read", "grep"]}),
    "nested": ("permission:\n  bash:\n    'git *': allow", {"permission": {"bash": {"git *": "allow"}}}),
    "folded": ("a: >-\n  one\n  two", {"a": "one two"}),
    "words that YAML would convert": (
        "a: no\nb: 1:20\nc: 2024-01-01\nd: null",
        {"a": "no", "b": "1:20", "c": "2024-01-01", "d": "null"},
    ),
    "empty": ("", {}),
    "empty value": ("a:\nb: x", {"a": "", "b": "x"}),
    "unquoted colon": (
        "description: Use when: the user asks\nname: x",
        {"description": "Use when: the user asks", "name": "x"},
    ),
    "unquoted colon and a list": (
        "description: Note: this\ntools:\n  - read",
        {"description": "Note: this", "tools": ["read"]},
    ),
    "unquoted star": ("argument-hint: *.py", {"argument-hint": "*.py"}),
    "unquoted brackets": ("name: x\nargument-hint: [file] [message]", None),
}


@pytest.mark.req("DX-5")
@pytest.mark.parametrize("case", VALID, ids=str)
def test_fields(case):
    head, fields = VALID[case]
    document = parse_markdown(f"---\n{head}\n---\n\nThe body.\n")
    assert document.body == "The body."
    if fields is None:
        assert document.fields["name"] == "x"
        assert document.fields["argument-hint"] == "[file] [message]"
    else:
        assert (document.fields, document.problems) == (fields, ())


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_newlines_and_byte_order_mark(newline, mark):
    document = parse_markdown(mark + newline.join(["---", "a: b", "--- ", "body", ""]))
    assert document.fields == {"a": "b"}
    assert document.body.strip() == "body"


WITHOUT_FRONT_MATTER = [
    "",
    "no head",
    "----\na: b\n---\n",
    "---\nnever closed: yes\n",
    " ---\na: b\n---\n",
    "text\n---\na: b\n---",
]


@pytest.mark.parametrize("text", WITHOUT_FRONT_MATTER)
def test_text_without_front_matter_is_all_body(text):
    document = parse_markdown(text)
    assert (document.fields, document.problems) == ({}, ())
    assert document.body == text


INVALID = {
    "bad nesting": ("name: x\n  bad: [", 3, {"name": "x"}),
    "tab": ("name: x\nlist:\n\t- a", 4, {"name": "x"}),
    "alias": ("a: &x [1]\nname: n\nb:\n  - *x", 5, {"name": "n"}),
    "not fields": ("- a\n- b", 2, {}),
    "just text": ("hello there", 2, {}),
    "an unknown tag is only a tag": ("a: !!python/object/apply:os.system ['touch /tmp/x']", 0, {}),
}


@pytest.mark.parametrize("case", INVALID, ids=str)
def test_invalid_front_matter_has_a_line_and_keeps_simple_fields(case):
    head, line, fields = INVALID[case]
    document = parse_markdown(f"---\n{head}\n---\nbody\n")
    assert [problem.line for problem in document.problems] == ([line] if line else [])
    assert fields.items() <= document.fields.items()
    assert document.body.strip() == "body"


HOSTILE = {
    "laughs": "a0: &a0 [x,x]\n" + "\n".join(f"a{n}: &a{n} [*a{n - 1},*a{n - 1}]" for n in range(1, 40)),
    "itself": "a: &a [*a]",
    "deep lists": "a: " + "[" * 5000,
    "deep objects": "a: " + "{a: " * 3000,
    "deep keys": "? " * 4000,
    "deep blocks": "\n".join(" " * n + "a:" for n in range(150)),
    "long": "a: " + "x" * MAX_HEAD_LENGTH,
    "anchors": " ".join(f"&a{n}" for n in range(2000)),
    "colons": "a" + ":" * 10_000,
    "quotes": 'a: "' + "\\" * 9_999,
    "huge number": "a: " + "9" * 10_000,
}


@pytest.mark.parametrize("case", HOSTILE, ids=str)
@pytest.mark.timeout(5)
def test_hostile_front_matter_is_parsed_quickly(case):
    document = parse_markdown(f"---\n{HOSTILE[case]}\n---\nbody")
    assert document.body == "body"
    assert len(repr(document.fields)) < 3 * MAX_HEAD_LENGTH


def test_nesting_depth_is_limited():
    for depth, accepted in ((MAX_DEPTH - 2, True), (MAX_DEPTH + 2, False)):
        assert bool(parse_markdown(f"---\na: {'[' * depth}{']' * depth}\n---\n").problems) is not accepted


values = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=20) | st.sampled_from(
    ["a: b", "a # b", "'x'", '"x"', "- x", "x:", "*", "&a", "'", '"', "''", "a'b", "[a]", "~", "x  "]
)


@examples(200)
@given(st.dictionaries(st.sampled_from(["a", "b-c", "D_e", "f1"]), values, max_size=3))
def test_plain_parser_agrees_with_yaml(fields):
    head = "\n".join(f"{name}: {value}" for name, value in fields.items())
    from ostler.knowledge.frontmatter import _plain_fields

    plain = _plain_fields(head)
    if plain is not None:
        assert plain == (yaml.load(head, yaml.BaseLoader) or {})


def test_plain_fields_do_not_import_yaml():
    code = "import sys; from ostler.knowledge.frontmatter import parse_markdown; parse_markdown('---\\na: b\\n---\\n')"
    code += "; print('yaml' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "False\n"
