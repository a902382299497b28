"""Splitting a diff into hunks, and applying a selection of them."""

import random

import pytest

from ostler.text.diff import unified_diff
from ostler.text.hunks import apply_selected_hunks, split_hunks

BEFORE = "".join(f"line {n}\n" for n in range(1, 31))
AFTER = BEFORE.replace("line 2\n", "two\n").replace("line 15\n", "").replace("line 30\n", "line 30\nend")


def test_diff_is_split_into_hunks():
    first, second, third = split_hunks(unified_diff(BEFORE, AFTER, "x").text)
    assert "+two\n" in first
    assert "-line 15\n" in second
    assert third.endswith("+end\n\\ No newline at end of file\n")


def test_content_that_looks_like_a_hunk_header_does_not_split():
    after = BEFORE.replace("line 2\n", "two\f@@ -1 +1 @@\x85@@ -1 +1 @@\n@@ -1 +1 @@\n")
    assert len(split_hunks(unified_diff(BEFORE, after, "x").text)) == 1


def test_diff_without_hunks_has_one_empty_hunk():
    assert split_hunks("") == [""]


@pytest.mark.parametrize(
    ("selected", "expected"),
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
def test_selected_hunks_are_applied(selected, expected):
    assert apply_selected_hunks(BEFORE, unified_diff(BEFORE, AFTER, "x").text, selected) == expected


def test_diff_of_another_text_is_rejected():
    with pytest.raises(ValueError, match="does not match the text"):
        apply_selected_hunks(BEFORE.replace("line 3", "LINE 3"), unified_diff(BEFORE, AFTER, "x").text, (1,))


def test_all_hunks_give_the_new_text_and_none_the_old_one():
    rng = random.Random(7)
    fragments = ["a\n", "b\n", "\n", "c\r\n", " \n", "-x\n", "+y\n", "@@ -1 +1 @@\n", "\\ No\n", "ü\x0bz\n"]
    for _ in range(300):
        before = "".join(rng.choices(fragments, k=rng.randrange(40))) + rng.choice(["", "end"])
        lines = before.splitlines(keepends=True)
        after = "".join(rng.choice([line, line, line, line, "", "new\n"]) for line in lines) + rng.choice(["", "last"])
        diff = unified_diff(before, after, "x").text
        all_hunks = range(1, len(split_hunks(diff)) + 1)
        assert apply_selected_hunks(before, diff, all_hunks) == after
        assert apply_selected_hunks(before, diff, ()) == before
