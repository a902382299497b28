"""Diffs are exact and take bounded time."""

import shutil
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.text.diff import unified_diff, word_diff
from ostler.text.matching import matching_blocks

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", "x y"]), max_size=25)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@pytest.mark.req("FS-5")
def test_changed_line():
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
def test_edge_cases(before, after, expected):
    assert unified_diff(before, after, "f").text == expected


def test_distant_changes_get_separate_hunks():
    before = [f"{number}\n" for number in range(40)]
    after = before.copy()
    after[5] = after[8] = after[30] = "new\n"
    diff = unified_diff("".join(before), "".join(after), "f")
    assert diff.text.count("@@ -") == 2
    assert "@@ -3,10 +3,10 @@\n" in diff.text
    assert "@@ -28,7 +28,7 @@\n" in diff.text


def test_long_diff_is_truncated_with_a_marker():
    diff = unified_diff("", "".join(f"{number}\n" for number in range(100)), "f", max_lines=10)
    assert diff.truncated
    assert diff.additions == 100
    assert diff.text.splitlines()[-1] == "[... 93 lines of the diff omitted ...]"
    assert len(diff.text.splitlines()) == 11


def test_line_feed_in_a_path_is_escaped():
    diff = unified_diff("a\n", "b\n", 'x\n+++ "evil\\')
    assert diff.text.splitlines()[0] == '--- "a/x\\012+++ \\"evil\\\\"'
    assert sum(line.startswith("+++") for line in diff.text.splitlines()) == 1


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@examples(25)
@given(TEXTS, TEXTS)
def test_git_can_apply_the_diff(tmp_path_factory, before, after):
    folder = tmp_path_factory.mktemp("apply")
    if before == after:
        return
    if before:
        (folder / "f").write_text(before, newline="")
    (folder / "patch").write_text(unified_diff(before, after, "f").text, newline="")
    subprocess.run(["git", "apply", "--unidiff-zero", "patch"], cwd=folder, check=True, capture_output=True)
    assert ((folder / "f").read_text() if after else "") == after


@given(TEXTS, TEXTS)
def test_counts_match_the_text(before, after):
    diff = unified_diff(before, after, "f", context=100)
    lines = diff.text.splitlines()[3:]
    assert sum(line.startswith("+") for line in lines) == diff.additions
    assert sum(line.startswith("-") for line in lines) == diff.deletions


@given(LINES, LINES)
def test_blocks_match_and_are_ascending(left, right):
    left_end = right_end = 0
    for start_left, start_right, size in matching_blocks(left, right):
        assert start_left >= left_end
        assert start_right >= right_end
        assert size > 0
        assert left[start_left : start_left + size] == right[start_right : start_right + size]
        left_end, right_end = start_left + size, start_right + size


@given(LINES, st.integers(0, 25), st.lists(st.sampled_from(["new 1", "new 2"]), max_size=3))
def test_insertion_removes_nothing(lines, index, added):
    changed = lines[:index] + added + lines[index:]
    assert sum(size for _, _, size in matching_blocks(lines, changed)) == len(lines)


@pytest.mark.slow
def test_small_change_in_a_large_file_is_fast():
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
def test_hostile_repetition_takes_bounded_time(before, after):
    started = time.perf_counter()
    diff = unified_diff(before, after, "f")
    assert diff.additions - diff.deletions == after.count("\n") - before.count("\n")
    assert time.perf_counter() - started < 10


def test_word_diff_of_a_changed_line():
    assert word_diff("call(one, two)", "call(one, three)") == [
        ("same", "call(one, "),
        ("removed", "two"),
        ("added", "three"),
        ("same", ")"),
    ]


def test_line_that_is_too_long_is_replaced_completely():
    old, new = "a " * 5000, "b " * 5000
    assert word_diff(old, new) == [("removed", old), ("added", new)]


@given(st.text(max_size=60), st.text(max_size=60))
def test_word_diff_contains_both_lines(old, new):
    parts = word_diff(old, new)
    assert "".join(text for op, text in parts if op != "added") == old
    assert "".join(text for op, text in parts if op != "removed") == new


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "e"]), max_size=40).map("".join)


@given(LINES, LINES, st.integers(0, 60))
def test_truncated_diff_is_the_start_of_the_full_diff(before, after, max_lines):
    full, truncated = unified_diff(before, after, "f"), unified_diff(before, after, "f", max_lines=max_lines)
    lines = full.text.replace("\n\\ No newline", "\0\\ No newline").splitlines(keepends=True)
    expected = "".join(lines[:max_lines]).replace("\0", "\n")
    assert (truncated.additions, truncated.deletions, truncated.truncated) == (
        full.additions,
        full.deletions,
        len(lines) > max_lines,
    )
    assert truncated.text.startswith(expected)
    assert (
        (str(len(lines) - max_lines) in truncated.text[len(expected) :])
        if truncated.truncated
        else truncated.text == full.text
    )
