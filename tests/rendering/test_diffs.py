"""Rendered diffs: lines coloured by sign, changed words highlighted."""

import re

import pytest

from ostler.core.display import Display, DisplayDiff
from ostler.core.events import PermissionAsked
from ostler.core.permission import Permission
from ostler.rendering.asks import render_ask
from ostler.rendering.diffs import render_diff, render_diff_for_approval
from ostler.rendering.style import Styler

COLOUR, PLAIN = Styler(enabled=True), Styler(enabled=False)
ESCAPES = re.compile(r"\x1b\[[\d;]*m")
DIFF = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n same\n-return a + b\n+return a - b\n"


@pytest.mark.req("CL-5")
def test_changed_words_are_highlighted():
    lines = render_diff(DIFF, COLOUR)
    assert lines[1] == " same"
    assert "\x1b[1;31m+\x1b[0m" in lines[2]
    assert "\x1b[1;32m-\x1b[0m" in lines[3]
    assert [ESCAPES.sub("", line) for line in lines] == render_diff(DIFF, PLAIN)


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
def test_no_line_is_lost_or_moved(body):
    assert [ESCAPES.sub("", line) for line in render_diff(body, COLOUR)] == body.split("\n")


def test_content_line_that_looks_like_a_header_is_shown():
    assert render_diff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- old\n+++ new", PLAIN) == [
        "@@ -1 +1 @@",
        "--- old",
        "+++ new",
    ]


@pytest.mark.req("PM-5")
@pytest.mark.parametrize(
    ("diff", "lines"),
    [
        ("--- a\n+++ b\n@@ -1,2 +1,2 @@\n-one\r\n+eins\r\n two\r\n", ["@@ -1,2 +1,2 @@", "-one", "+eins", " two"]),
        ("@@ -1 +1 @@\n-one\r\n+eins\n", ["@@ -1 +1 @@", "-one\\r", "+eins"]),
        ("@@ -1 +1 @@\n-one\n+one\r\n", ["@@ -1 +1 @@", "-one", "+one\\r"]),
        (
            "@@ -1,2 +1,2 @@\n x\r\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
            [
                "@@ -1,2 +1,2 @@",
                " x",
                "-a",
                "\\ No newline at end of file",
                "+b",
                "\\ No newline at end of file",
            ],
        ),
        ("@@ -0,0 +1 @@\n+rm -rf /\recho\r\n", ["@@ -0,0 +1 @@", "+rm -rf /\\recho"]),
    ],
    ids=["all CRLF", "CRLF to LF", "LF to CRLF", "no newline at end", "CR inside a line"],
)
def test_crlf_of_all_lines_is_not_escaped(diff, lines):
    assert render_diff_for_approval(diff, PLAIN) == lines


@pytest.mark.req("PM-5")
def test_approval_request_reports_crlf_once():
    preview = Display("", (DisplayDiff("x", "@@ -1 +1 @@\n-one\r\n+eins\r\n", "updated", 1, 1),))
    lines = render_ask(PermissionAsked("a", Permission("edit x", (), preview)), PLAIN)
    assert lines[1:] == [
        "  x: would be updated, +1 -1",
        "  lines end with \\r\\n",
        "  @@ -1 +1 @@",
        "  -one",
        "  +eins",
    ]
