"""Calls in answers: a corpus, split anywhere, and text that only looks like a call."""

import json
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core.tools import ToolSpec
from ostler.models.dialects.call_json import TextCall
from ostler.models.dialects.text_calls import TextCallFinder

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data/dialects/text_calls.jsonl").read_text("utf-8").splitlines()
]
BY_STYLE = defaultdict(list)
for _case in CORPUS:
    BY_STYLE[_case["style"]].append(_case)

PARAMETERS = {
    "read": {"path": "string", "line": "integer", "limit": "integer"},
    "write": {"path": "string", "content": "string"},
    "edit": {"path": "string", "edits": "array"},
    "bash": {"command": "string", "timeout": "number", "background": "boolean"},
    "list": {"path": "string"},
}
TOOLS = {
    name: ToolSpec(
        name, "other", "", {"type": "object", "properties": {key: {"type": kind} for key, kind in types.items()}}
    )
    for name, types in PARAMETERS.items()
}
ALIASES = {"read_file": TOOLS["read"]}


def find_calls(parts, **options):
    """Return the texts and calls found, with consecutive texts joined."""
    finder = TextCallFinder(TOOLS, ALIASES, **options)
    found = [item for part in parts for item in finder.feed(part)] + finder.finish()
    joined = []
    for item in found:
        if isinstance(item, str) and joined and isinstance(joined[-1], str):
            joined[-1] += item
        else:
            joined.append(item)
    return joined


def text_of(found):
    return "".join(item for item in found if isinstance(item, str))


def describe_error(case, found):
    """Return how the result differs from the case, or an empty string."""
    calls = [item for item in found if isinstance(item, TextCall)]
    if text_of(found) != case["said"]:
        return f"text {text_of(found)!r}"
    if [call.tool for call in calls] != [call["tool"] for call in case["calls"]]:
        return f"calls {calls}"
    for call, expected in zip(calls, case["calls"], strict=True):
        if "broken" in expected:
            if expected["broken"] not in call.arguments or is_object(call.arguments):
                return f"{call} instead of an invalid call"
        elif json.loads(call.arguments) != expected["arguments"]:
            return f"call {call}"
    return ""


def is_object(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@pytest.mark.req("MD-6", "TL-8")
@pytest.mark.parametrize("style", BY_STYLE)
def test_each_answer_of_the_corpus(style):
    results = [(case["text"], describe_error(case, find_calls([case["text"]]))) for case in BY_STYLE[style]]
    assert [(text, error) for text, error in results if error] == []


@pytest.mark.req("MD-6")
@pytest.mark.parametrize("style", BY_STYLE)
@pytest.mark.sampled(every=5)
def test_any_split_of_the_corpus_gives_the_same(style):
    for case in BY_STYLE[style]:
        text = case["text"]
        expected = find_calls([text])
        assert find_calls(text) == expected, text
        assert find_calls([text[index : index + 3] for index in range(0, len(text), 3)]) == expected, text
        for index in range(0, len(text), 5):
            assert find_calls([text[:index], text[index:]]) == expected, (text, index)


@pytest.mark.req("MD-6")
def test_corpus_covers_all_styles():
    assert len(CORPUS) >= 280
    styles = Counter(case["style"] for case in CORPUS)
    assert {"hermes", "qwen", "llama", "fenced", "bare", "unclosed", "cut", "thought", "unknown", "prose"} <= set(
        styles
    )
    assert {"glm", "pythonic", "open fence"} <= set(styles)
    assert min(styles.values()) >= 5
    assert sum(not case["calls"] for case in CORPUS) >= 50


PARTS = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "<function=read>", "</function>", "<parameter=path>", "</parameter>"),
        *('{"name": "read", "arguments": {"path": "a"}}', '{"name": "', "read", '", "arguments": {', "}", '"', "\\"),
        *("```", "```json\n", "\n", " ", "`", "<", "{", "[", "]", "<think>", "</think>", "[TOOL_CALLS]", "words"),
        *(
            "</",
            "<invoke name=",
            '{"id": 1, ',
            "'",
            ",",
            "ü😀",
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
        ),
        *("[read(", "[read(path='a')]", 'path="', ")]", '"""', "\n[", "<|python_start|>"),
    ]
)


@pytest.mark.req("MD-6")
@examples(150)
@given(st.lists(PARTS, max_size=25), st.lists(st.integers(0, 200), max_size=8))
def test_any_chunking_gives_the_same(parts, cuts):
    text = "".join(parts)
    offsets = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    expected = find_calls([text])
    assert find_calls([text[start:end] for start, end in pairwise(offsets)]) == expected
    assert find_calls(text) == expected


@examples(100)
@given(st.text(st.sampled_from("<>{}[]`\"'\n =/abtool_cnamerfunci:,"), max_size=80))
def test_text_without_calls_is_unchanged(text):
    found = find_calls(text)
    if all(isinstance(item, str) for item in found):
        assert text_of(found) == text


@pytest.mark.req("MD-6")
@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("a <", "a "),
        ("a <b", "a <b"),
        ("a <tool_call>", "a "),
        ("a <tool_call> tag", "a <tool_call> tag"),
        ('{"name": "re', ""),
        ('{"name": "rx', '{"name": "rx'),
        ('{"version": 1', '{"version": 1'),
        ("```js", ""),
        ("```js\n", "```js\n"),
        ('```json\n{"a', ""),
        ('```json\n{"ab', '```json\n{"ab'),
        ("`co", "`co"),
        ('so {"name": "read"', 'so {"name": "read"'),
        ("[1] one", "[1] one"),
        ('x\n{"name": "read", "arguments": {}}\n', "x\n"),
        ('x\n{"name": "read", "arguments": {}}\ny', 'x\n{"name": "read", "arguments": {}}\ny'),
    ],
)
def test_text_is_held_back_only_while_it_may_be_a_call(text, output):
    finder = TextCallFinder(TOOLS)
    assert text_of([item for char in text for item in finder.feed(char)]) == output


def test_tags_only():
    call = '{"name": "read", "arguments": {"path": "a"}}'
    assert find_calls([call], tags_only=True) == [call]
    assert find_calls([f"```json\n{call}\n```"], tags_only=True) == [f"```json\n{call}\n```"]
    assert len(find_calls([f"<tool_call>{call}</tool_call>"], tags_only=True)) == 1


@pytest.mark.slow
@pytest.mark.req("DX-6")
def test_plain_text_in_tiny_parts_is_cheap():
    answer = "A word, and (more) words: it's all plain text.\n" * 4300
    parts = [answer[start : start + 4] for start in range(0, len(answer), 4)]
    assert len(answer) > 200_000

    def find_all():
        finder = TextCallFinder(TOOLS)
        for part in parts:
            finder.feed(part)

    def seconds(work):
        started = time.process_time()
        work()
        return time.process_time() - started

    best = min(seconds(find_all) for _ in range(3))
    floor = min(seconds(lambda: [json.loads('{"delta": {"content": "abcd"}}') for _ in parts]) for _ in range(3))
    assert best < 4 * floor


HOSTILE = [
    *("<tool_call>", "<tool_call>\n", '<tool_call>{"name": "read", ', '{"name": "read"\n', "<function=read>"),
    *("<function=read><parameter=path>", "</parameter>", '{"name":"read","arguments":{}}\n', "```json\n{", "``` "),
    *("`", "<", "[", "{", '{"id": "a", ', '<invoke name="', "<think>\n", '{"name": "read", "arguments": {"a":['),
    *(
        "<tool_call>read\n<arg_key>path</arg_key><arg_value>",
        "<arg_key>a",
        "[read(",
        "[read(path='a'), ",
        "\n[read('''",
    ),
    *("```\n<tool_call>", "```\nx\n<tool_call>{", "[r", '[read(path="', '"""'),
    *("~~~\n", "`\n", "> ", "    [read(path='a')]\n", "``", "\n~"),
    *(' <tool_call>{"name":"read","arguments":{}}</tool_call> ', '<tool_call>{"name": "read", "a": "\\'),
]


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("before", ["", "<function=read><parameter=path>", '<tool_call>{"name": "read", '])
def test_hostile_text_takes_linear_time(unit, before):
    def seconds(size):
        text = before + unit * (size // len(unit))
        started = time.process_time()
        find_calls([text[start : start + 7] for start in range(0, len(text), 7)])
        return time.process_time() - started

    small = max(min(seconds(8_000) for _ in range(2)), 0.002)
    assert seconds(32_000) < 12 * small
