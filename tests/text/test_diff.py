"""A diff tells exactly what changed, at a bounded cost."""

import shutil
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.text.diff import unified_diff, word_diff
from ostler.text.matching import matching_blocks

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", "x y"]), max_size=25)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@pytest.mark.req("FS-5")
def test_a_changed_line():
    diff = unified_diff("a\nb\nc\n", "a\nB\nc\n", "dir/f.txt")
    assert diff.text == "--- a/dir/f.txt\n+++ b/dir/f.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
    assert (diff.additions, diff.deletions, diff.truncated) == (1, 1, False)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "a\nb\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"),
        ("a\n", "", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
        ("a", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        ("a\nb", "A\nb", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"),
        ("a\r\n", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+a\n"),
        ("a\x0cb\u2028c\n", "a\x0cb\u2028d\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\x0cb\u2028c\n+a\x0cb\u2028d\n"),
        ("same\n", "same\n", ""),
    ],
)
def test_edges(before, after, expected):
    assert unified_diff(before, after, "f").text == expected


def test_distant_changes_are_hunks_of_their_own_and_near_ones_share():
    before = [f"{number}\n" for number in range(40)]
    after = before.copy()
    after[5] = after[8] = after[30] = "new\n"
    diff = unified_diff("".join(before), "".join(after), "f")
    assert diff.text.count("@@ -") == 2
    assert "@@ -3,10 +3,10 @@\n" in diff.text
    assert "@@ -28,7 +28,7 @@\n" in diff.text


def test_a_long_diff_is_cut_and_says_so():
    diff = unified_diff("", "".join(f"{number}\n" for number in range(100)), "f", max_lines=10)
    assert diff.truncated
    assert diff.additions == 100
    assert diff.text.splitlines()[-1] == "[... 93 lines of the diff left out ...]"
    assert len(diff.text.splitlines()) == 11


def test_a_line_feed_in_a_path_begins_no_line():
    diff = unified_diff("a\n", "b\n", 'x\n+++ "evil\\')
    assert diff.text.splitlines()[0] == '--- "a/x\\012+++ \\"evil\\\\"'
    assert sum(line.startswith("+++") for line in diff.text.splitlines()) == 1


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=25, deadline=None)
@given(TEXTS, TEXTS)
def test_git_applies_it(tmp_path_factory, before, after):
    folder = tmp_path_factory.mktemp("apply")
    if before == after:
        return
    if before:
        (folder / "f").write_text(before, newline="")
    (folder / "patch").write_text(unified_diff(before, after, "f").text, newline="")
    subprocess.run(["git", "apply", "--unidiff-zero", "patch"], cwd=folder, check=True, capture_output=True)
    assert ((folder / "f").read_text() if after else "") == after


@given(TEXTS, TEXTS)
def test_counts_fit_the_text(before, after):
    diff = unified_diff(before, after, "f", context=100)
    lines = diff.text.splitlines()[3:]
    assert sum(line.startswith("+") for line in lines) == diff.additions
    assert sum(line.startswith("-") for line in lines) == diff.deletions


@given(LINES, LINES)
def test_blocks_match_and_rise(left, right):
    at_left = at_right = 0
    for start_left, start_right, size in matching_blocks(left, right):
        assert start_left >= at_left
        assert start_right >= at_right
        assert size > 0
        assert left[start_left : start_left + size] == right[start_right : start_right + size]
        at_left, at_right = start_left + size, start_right + size


@given(LINES, st.integers(0, 25), st.lists(st.sampled_from(["new 1", "new 2"]), max_size=3))
def test_an_insertion_removes_nothing(lines, place, added):
    changed = lines[:place] + added + lines[place:]
    assert sum(size for _, _, size in matching_blocks(lines, changed)) == len(lines)


@pytest.mark.slow
def test_a_small_change_in_a_large_file_is_quick():
    before = "".join(f"some line of code number {number}\n" for number in range(180_000))
    after = before.replace("number 90000\n", "number ninety\n")
    assert len(before) > 5_000_000
    started = time.perf_counter()
    diff = unified_diff(before, after, "big")
    assert (diff.additions, diff.deletions) == (1, 1)
    assert time.perf_counter() - started < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\n" * 30_000, "b\na\na\n" * 25_000),
        ("\n" * 60_000, "\n\nx\n" * 20_000),
        (
            "".join(f"{n * 7919 % 3}\n" for n in range(30_000)),
            "".join(f"{n * 104729 % 5 % 3}\n" for n in range(30_000)),
        ),
    ],
)
def test_hostile_repetition_is_bounded(before, after):
    started = time.perf_counter()
    diff = unified_diff(before, after, "f")
    assert diff.additions - diff.deletions == after.count("\n") - before.count("\n")
    assert time.perf_counter() - started < 10


def test_words_of_a_changed_line():
    assert word_diff("call(one, two)", "call(one, three)") == [
        ("same", "call(one, "),
        ("removed", "two"),
        ("added", "three"),
        ("same", ")"),
    ]


def test_a_line_too_long_to_compare_is_replaced_whole():
    old, new = "a " * 5000, "b " * 5000
    assert word_diff(old, new) == [("removed", old), ("added", new)]


@given(st.text(max_size=60), st.text(max_size=60))
def test_words_rebuild_both_lines(old, new):
    pieces = word_diff(old, new)
    assert "".join(text for op, text in pieces if op != "added") == old
    assert "".join(text for op, text in pieces if op != "removed") == new


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "e"]), max_size=40).map("".join)


@settings(deadline=None)
@given(LINES, LINES, st.integers(0, 60))
def test_a_diff_that_is_cut_is_the_beginning_of_the_whole_one(before, after, most):
    whole, cut = unified_diff(before, after, "f"), unified_diff(before, after, "f", max_lines=most)
    lines = whole.text.replace("\n\\ No newline", "\0\\ No newline").splitlines(keepends=True)
    shown = "".join(lines[:most]).replace("\0", "\n")
    assert (cut.additions, cut.deletions, cut.truncated) == (whole.additions, whole.deletions, len(lines) > most)
    assert cut.text.startswith(shown)
    assert (str(len(lines) - most) in cut.text[len(shown) :]) if cut.truncated else cut.text == whole.text
