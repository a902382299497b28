"""Diffs on a terminal: lines by their sign, and in changed lines the words that changed."""

import re

import pytest

from ostler.drawing.diffs import diff_lines
from ostler.drawing.paint import Paint

COLOUR, PLAIN = Paint(on=True), Paint(on=False)
ESCAPES = re.compile(r"\x1b\[[\d;]*m")
DIFF = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n same\n-return a + b\n+return a - b\n"


@pytest.mark.req("CL-5")
def test_the_words_that_changed_stand_out():
    lines = diff_lines(DIFF, COLOUR)
    assert lines[1] == " same"
    assert "\x1b[1;31m+\x1b[0m" in lines[2]
    assert "\x1b[1;32m-\x1b[0m" in lines[3]
    assert [ESCAPES.sub("", line) for line in lines] == diff_lines(DIFF, PLAIN)


@pytest.mark.parametrize(
    "body",
    [
        "-a\n-b\n+c",
        "-wholly\n+different",
        "+only new",
        "-only old",
        "-a\n+b\n-c\n+d",
        " x\n\\ No newline",
        "-" + "x " * 900 + "\n+y",
    ],
)
def test_nothing_is_lost_or_moved(body):
    assert [ESCAPES.sub("", line) for line in diff_lines(body, COLOUR)] == body.split("\n")


def test_a_line_of_the_file_that_looks_like_a_header_stays():
    assert diff_lines("--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- old\n+++ new", PLAIN) == ["@@ -1 +1 @@", "--- old", "+++ new"]
