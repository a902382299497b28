"""Separating reasoning from the answer, for any split of the text."""

import pytest

from ostler.models.think_tags import ThinkSplitter


def split(*parts: str) -> tuple[str, str]:
    splitter = ThinkSplitter()
    runs = [run for part in parts for run in splitter.feed(part)] + splitter.flush()
    return "".join(text for is_thought, text in runs if is_thought), "".join(
        text for thought, text in runs if not thought
    )


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("hello", "", "hello"),
        ("<think>why</think>because", "why", "because"),
        ("<think>\nwhy\n</think>\n\nbecause", "why", "because"),
        ("\n <think>why</think>because", "why", "because"),
        ("<think></think>yes", "", "yes"),
        ("<think>never closed", "never closed", ""),
        ("<think>a < b </thin </think>c", "a < b </thin ", "c"),
        ("<think", "", "<think"),
        ("<thinking>no", "", "<thinking>no"),
        ("the tag <think> is text here</think>", "", "the tag <think> is text here</think>"),
        ("<think>a</think>b <think>c</think>", "a", "b <think>c</think>"),
        ("  leading", "", "  leading"),
        ("<think>ü</think>ü", "ü", "ü"),
    ],
)
def test_split(text, thought, answer):
    assert split(text) == (thought, answer)
    for index in range(len(text) + 1):
        result = split(text[:index], text[index:])
        assert (result[0].strip("\n"), result[1]) == (thought, answer)
    result = split(*text)
    assert (result[0].strip("\n"), result[1]) == (thought, answer)


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("I wonder.\n</think>\n\nYes.", "I wonder.", "Yes."),
        ("I wonder.</think>Yes.", "I wonder.", "Yes."),
        ("</think>\n\nYes.", "", "Yes."),
        ("a < b, </thin\n</think>Yes.", "a < b, </thin", "Yes."),
        ("only thoughts\n</think>", "only thoughts", ""),
        ("one\n</think>two\n</think>three", "one", "two\n</think>three"),
    ],
)
def test_text_before_a_lone_closing_tag_is_reasoning(text, thought, answer):
    for parts in ([text], text, [text[:4], text[4:]], [text[:12], text[12:]]):
        splitter = ThinkSplitter()
        thoughts, answers, reclassified = [], [], 0
        for part in parts:
            runs = splitter.feed(part)
            if splitter.lone_close:
                splitter.lone_close = False
                reclassified += 1
                thoughts, answers = answers, []
            for is_thought, run in runs:
                (thoughts if is_thought else answers).append(run)
        answers += [run for _, run in splitter.flush()]
        assert ("".join(thoughts).rstrip("\n"), "".join(answers)) == (thought, answer)
        assert reclassified == 1


@pytest.mark.parametrize(
    "text",
    [
        "The tag `</think>` ends it.",
        "The tag </think> ends it.",
        'Say "</think>" then.',
        "<b>x</b> <think>y\n</think>\nz",
        "a<think>b</think>c",
        "no tag at all <",
        "almost </think",
    ],
)
def test_mentioned_tag_is_text(text):
    for parts in ([text], text, [text[:9], text[9:]]):
        splitter = ThinkSplitter()
        runs = [run for part in parts for run in splitter.feed(part)] + splitter.flush()
        assert ("".join(run for _, run in runs), any(thought for thought, _ in runs)) == (text, False)
        assert not splitter.lone_close


def test_tags_are_ignored_if_the_server_separates_reasoning():
    for reasoning_first in (True, False):
        splitter = ThinkSplitter()
        runs = [] if reasoning_first else splitter.feed("a")
        splitter.ignore_tags()
        runs += splitter.feed("b\n</think>c")
        assert "".join(run for thought, run in runs if not thought).endswith("b\n</think>c")


def test_opening_tag_is_not_held_back_after_the_start():
    splitter = ThinkSplitter()
    assert splitter.feed("a") == [(False, "a")]
    assert splitter.feed("<thi") == [(False, "<thi")]
