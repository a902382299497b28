"""Hunks of a diff: told apart, and some made without the others."""

import random

import pytest

from ostler.text.diff import unified_diff
from ostler.text.hunks import apply_selected_hunks, split_hunks

BEFORE = "".join(f"line {n}\n" for n in range(1, 31))
AFTER = BEFORE.replace("line 2\n", "two\n").replace("line 15\n", "").replace("line 30\n", "line 30\nend")


def test_hunks_are_told_apart():
    one, two, three = split_hunks(unified_diff(BEFORE, AFTER, "x").text)
    assert "+two\n" in one
    assert "-line 15\n" in two
    assert three.endswith("+end\n\\ No newline at end of file\n")


def test_a_line_that_looks_like_the_beginning_of_one_is_none():
    after = BEFORE.replace("line 2\n", "two\f@@ -1 +1 @@\x85@@ -1 +1 @@\n@@ -1 +1 @@\n")
    assert len(split_hunks(unified_diff(BEFORE, after, "x").text)) == 1


def test_a_change_without_hunks_counts_as_one():
    assert split_hunks("") == [""]


@pytest.mark.parametrize(
    ("taken", "made"),
    [
        ((), BEFORE),
        ((1,), BEFORE.replace("line 2\n", "two\n")),
        ((2,), BEFORE.replace("line 15\n", "")),
        ((3,), BEFORE + "end"),
        ((1, 3), BEFORE.replace("line 2\n", "two\n") + "end"),
        ((1, 2, 3), AFTER),
        ((7, -1), BEFORE),
    ],
)
def test_some_are_made_without_the_others(taken, made):
    assert apply_selected_hunks(BEFORE, unified_diff(BEFORE, AFTER, "x").text, taken) == made


def test_a_diff_of_another_text_is_refused():
    with pytest.raises(ValueError, match="another text"):
        apply_selected_hunks(BEFORE.replace("line 3", "LINE 3"), unified_diff(BEFORE, AFTER, "x").text, (1,))


def test_all_hunks_of_any_change_make_it_and_none_leave_it():
    rng = random.Random(7)
    pieces = ["a\n", "b\n", "\n", "c\r\n", " \n", "-x\n", "+y\n", "@@ -1 +1 @@\n", "\\ No\n", "ü\x0bz\n"]
    for _ in range(300):
        before = "".join(rng.choices(pieces, k=rng.randrange(40))) + rng.choice(["", "end"])
        lines = before.splitlines(keepends=True)
        after = "".join(rng.choice([line, line, line, line, "", "new\n"]) for line in lines) + rng.choice(["", "last"])
        diff = unified_diff(before, after, "x").text
        every = range(1, len(split_hunks(diff)) + 1)
        assert apply_selected_hunks(before, diff, every) == after
        assert apply_selected_hunks(before, diff, ()) == before
