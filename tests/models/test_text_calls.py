"""Calls that models write into their answers: a corpus, cut anywhere, and what only looks like one."""

import json
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
KNOWN = {
    name: ToolSpec(
        name, "other", "", {"type": "object", "properties": {key: {"type": kind} for key, kind in of.items()}}
    )
    for name, of in PARAMETERS.items()
}
ALIASES = {"read_file": KNOWN["read"]}


def play(pieces, **options):
    """What comes out, with neighbouring texts joined."""
    calls = TextCallFinder(KNOWN, ALIASES, **options)
    found = [item for piece in pieces for item in calls.feed(piece)] + calls.finish()
    joined = []
    for item in found:
        if isinstance(item, str) and joined and isinstance(joined[-1], str):
            joined[-1] += item
        else:
            joined.append(item)
    return joined


def said(found):
    return "".join(item for item in found if isinstance(item, str))


def wrong(case, found):
    """What of a case is not as it should be, or nothing."""
    calls = [item for item in found if isinstance(item, TextCall)]
    if said(found) != case["said"]:
        return f"said {said(found)!r}"
    if [call.tool for call in calls] != [call["tool"] for call in case["calls"]]:
        return f"called {calls}"
    for call, wanted in zip(calls, case["calls"], strict=True):
        if "broken" in wanted:
            if wanted["broken"] not in call.arguments or is_object(call.arguments):
                return f"made {call} of what is broken"
        elif json.loads(call.arguments) != wanted["arguments"]:
            return f"called {call}"
    return ""


def is_object(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@pytest.mark.req("MD-6", "TL-8")
@pytest.mark.parametrize("style", BY_STYLE)
def test_each_answer_is_understood(style):
    found = [(case["text"], told) for case in BY_STYLE[style] if (told := wrong(case, play([case["text"]])))]
    assert found == []


@pytest.mark.req("MD-6")
@pytest.mark.parametrize("style", BY_STYLE)
def test_wherever_it_is_cut(style):
    for case in BY_STYLE[style]:
        text = case["text"]
        whole = play([text])
        assert play(text) == whole, text
        assert play([text[at : at + 3] for at in range(0, len(text), 3)]) == whole, text
        for at in range(0, len(text), 5):
            assert play([text[:at], text[at:]]) == whole, (text, at)


@pytest.mark.req("MD-6")
def test_the_corpus_is_wide():
    assert len(CORPUS) >= 280
    styles = Counter(case["style"] for case in CORPUS)
    assert {"hermes", "qwen", "llama", "fenced", "bare", "unclosed", "cut", "thought", "unknown", "prose"} <= set(
        styles
    )
    assert {"glm", "pythonic", "open fence"} <= set(styles)
    assert min(styles.values()) >= 5
    assert sum(not case["calls"] for case in CORPUS) >= 50


PIECES = st.sampled_from(
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
@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=25), st.lists(st.integers(0, 200), max_size=8))
def test_any_chunking_gives_the_same(pieces, cuts):
    text = "".join(pieces)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    whole = play([text])
    assert play([text[begin:end] for begin, end in pairwise(places)]) == whole
    assert play(text) == whole


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("<>{}[]`\"'\n =/abtool_cnamerfunci:,"), max_size=80))
def test_nothing_is_lost_of_what_is_no_call(text):
    found = play(text)
    if all(isinstance(item, str) for item in found):
        assert said(found) == text


@pytest.mark.req("MD-6")
@pytest.mark.parametrize(
    ("text", "shown"),
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
def test_text_is_held_back_only_while_it_may_be_a_call(text, shown):
    calls = TextCallFinder(KNOWN)
    assert said([item for char in text for item in calls.feed(char)]) == shown


def test_tags_alone_can_be_asked_for():
    call = '{"name": "read", "arguments": {"path": "a"}}'
    assert play([call], tags_only=True) == [call]
    assert play([f"```json\n{call}\n```"], tags_only=True) == [f"```json\n{call}\n```"]
    assert len(play([f"<tool_call>{call}</tool_call>"], tags_only=True)) == 1


@pytest.mark.slow
@pytest.mark.req("DX-6")
def test_plain_text_in_tiny_pieces_costs_next_to_nothing():
    answer = "A word, and (more) words: it's all plain text.\n" * 4300
    pieces = [answer[at : at + 4] for at in range(0, len(answer), 4)]
    assert len(answer) > 200_000

    def ours():
        calls = TextCallFinder(KNOWN)
        for piece in pieces:
            calls.feed(piece)

    def seconds(work):
        begun = time.process_time()
        work()
        return time.process_time() - begun

    best = min(seconds(ours) for _ in range(3))
    floor = min(seconds(lambda: [json.loads('{"delta": {"content": "abcd"}}') for _ in pieces]) for _ in range(3))
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
    *(' <tool_call>{"name":"read","arguments":{}}</tool_call> ', '<tool_call>{"name": "read", "a": "\\'),
]


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("before", ["", "<function=read><parameter=path>", '<tool_call>{"name": "read", '])
def test_hostile_text_takes_time_in_proportion(unit, before):
    def seconds(size):
        text = before + unit * (size // len(unit))
        begun = time.process_time()
        play([text[at : at + 7] for at in range(0, len(text), 7)])
        return time.process_time() - begun

    small = max(min(seconds(8_000) for _ in range(2)), 0.002)
    assert seconds(32_000) < 12 * small
