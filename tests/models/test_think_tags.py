"""Reasoning written into the answer is told apart, wherever the pieces are cut."""

import pytest

from ostler.models.think_tags import ThinkSplitter


def play(*pieces: str) -> tuple[str, str]:
    splitter = ThinkSplitter()
    runs = [run for piece in pieces for run in splitter.feed(piece)] + splitter.flush()
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
    assert play(text) == (thought, answer)
    for at in range(len(text) + 1):
        got = play(text[:at], text[at:])
        assert (got[0].strip("\n"), got[1]) == (thought, answer)
    got = play(*text)
    assert (got[0].strip("\n"), got[1]) == (thought, answer)


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
def test_a_closing_tag_that_nothing_opened_makes_all_before_it_reasoning(text, thought, answer):
    for pieces in ([text], text, [text[:4], text[4:]], [text[:12], text[12:]]):
        splitter = ThinkSplitter()
        thoughts, answers, taken_back = [], [], 0
        for piece in pieces:
            runs = splitter.feed(piece)
            if splitter.lone_close:
                splitter.lone_close = False
                taken_back += 1
                thoughts, answers = answers, []
            for is_thought, run in runs:
                (thoughts if is_thought else answers).append(run)
        answers += [run for _, run in splitter.flush()]
        assert ("".join(thoughts).rstrip("\n"), "".join(answers)) == (thought, answer)
        assert taken_back == 1


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
def test_a_tag_that_is_only_spoken_of_changes_nothing(text):
    for pieces in ([text], text, [text[:9], text[9:]]):
        splitter = ThinkSplitter()
        runs = [run for piece in pieces for run in splitter.feed(piece)] + splitter.flush()
        assert ("".join(run for _, run in runs), any(thought for thought, _ in runs)) == (text, False)
        assert not splitter.lone_close


def test_a_server_that_tells_reasoning_apart_is_believed():
    for told_first in (True, False):
        splitter = ThinkSplitter()
        runs = [] if told_first else splitter.feed("a")
        splitter.ignore_tags()
        runs += splitter.feed("b\n</think>c")
        assert "".join(run for thought, run in runs if not thought).endswith("b\n</think>c")


def test_nothing_is_held_back_once_the_answer_has_begun():
    splitter = ThinkSplitter()
    assert splitter.feed("a") == [(False, "a")]
    assert splitter.feed("<thi") == [(False, "<thi")]
