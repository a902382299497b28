"""Placing and applying hunks, and the errors for hunks that do not apply."""

import pytest

from ostler.core.errors import ToolError
from ostler.tools.editing.hunk_apply import apply_hunks
from ostler.tools.editing.patch_parser import parse_patch

pytestmark = pytest.mark.req("TL-5")


def apply_diff(text: str, hunks: str) -> tuple[str, tuple[str, ...]]:
    (file,) = parse_patch(f"--- a/f\n+++ b/f\n{hunks}")
    result = apply_hunks("f", text, file.hunks)
    return result.text, result.notes


def apply_begin_patch(text: str, hunks: str) -> str:
    (file,) = parse_patch(f"*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch\n")
    return apply_hunks("f", text, file.hunks).text


TEN = "".join(f"line {n}\n" for n in range(1, 11))

APPLIED = {
    "a plain hunk": ("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"),
    "two hunks": (TEN, "@@ -1,2 +1,1 @@\n-line 1\n line 2\n@@ -9,2 +8,3 @@\n line 9\n+new\n line 10\n", None),
    "wrong line numbers": ("a\nb\nc\n", "@@ -90,3 +90,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"),
    "no line numbers": ("a\nb\nc\n", "@@ @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"),
    "the line number decides": ("x\nb\nx\nb\n", "@@ -3,2 +3,2 @@\n x\n-b\n+B\n", "x\nb\nx\nB\n"),
    "drift applies to later hunks": (
        "new\nx\nb\n1\n2\nx\nb\n",
        "@@ -1,3 +1,3 @@\n x\n-b\n+B\n 1\n@@ -5,2 +5,2 @@\n x\n-b\n+B\n",
        "new\nx\nB\n1\n2\nx\nB\n",
    ),
    "outer context changed": (
        "A!\nb\nc\nd\ne\nF!\n",
        "@@ -1,6 +1,6 @@\n a\n b\n-c\n+C\n d\n e\n f\n",
        "A!\nb\nC\nd\ne\nF!\n",
    ),
    "trailing blanks in the file": ("a  \nb\t\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a  \nB\nc\n"),
    "another indentation": ("  a\n    b\n  c\n", "@@ -1,3 +1,3 @@\n a\n-  b\n+  B\n c\n", "  a\n    B\n  c\n"),
    "CRLF in the file": ("a\r\nb\r\nc\r\n", "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+x\n c\n", "a\r\nB\r\nx\r\nc\r\n"),
    "CRLF in the patch": ("a\nb\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n", "a\nB\n"),
    "CRLF in both": ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n", "a\r\nB\r\n"),
    "CRLF to LF": ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n-b\r\n+a\n+b\n", "a\nb\n"),
    "CR in the file": ("a\rb\rc\r", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\rB\rc\r"),
    "a CR inside a line": ("a\rx\nb\n", "@@ -1,2 +1,2 @@\n a\rx\n-b\n+B\n", "a\rx\nB\n"),
    "mixed line endings": ("a\r\nb\nc\r\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\r\nB\nc\r\n"),
    "no final newline, kept": ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\nB"),
    "no final newline, marked on both sides": (
        "a\nb",
        "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n",
        "a\nB",
    ),
    "final newline added": ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n"),
    "final newline removed": ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb"),
    "lines after a last line without newline": ("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\nb\nc"),
    "last line without newline removed": (
        "a\nb",
        "@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n",
        "a\n",
    ),
    "all lines removed": ("a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n", ""),
    "into an empty file": ("", "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n"),
    "at the top": ("a\nb\n", "@@ -1,2 +1,3 @@\n+x\n a\n b\n", "x\na\nb\n"),
    "at the bottom": ("a\nb\n", "@@ -1,2 +1,3 @@\n a\n b\n+x\n", "a\nb\nx\n"),
    "removed lines without context": ("a\nb\nc\n", "@@ -2 +1,0 @@\n-b\n", "a\nc\n"),
    "form feeds are not line breaks": ("a\x0cb\nc\n", "@@ -1,2 +1,2 @@\n a\x0cb\n-c\n+d\n", "a\x0cb\nd\n"),
    "an empty line of context": ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "hunks", "after"), APPLIED.values(), ids=APPLIED.keys())
def test_hunks_apply(text, hunks, after):
    expected = after if after is not None else TEN.replace("line 1\n", "", 1).replace("line 10", "new\nline 10")
    assert apply_diff(text, hunks)[0] == expected


@pytest.mark.parametrize(
    ("text", "hunks", "note"),
    [
        ("a\nb\nc\n", "@@ -90,3 +90,3 @@\n a\n-b\n+B\n c\n", "found at line 1, not 90"),
        ("a  \nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "matched: trailing blanks"),
        ("  a\n  b\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "matched: indentation"),
        ("A!\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n b\n-c\n+C\n", "1 context line not as in the file"),
    ],
)
def test_tolerances_are_noted(text, hunks, note):
    assert any(note in message for message in apply_diff(text, hunks)[1])


def test_exact_hunk_has_no_notes():
    assert apply_diff("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")[1] == ()


REJECTED = {
    "a removed line that differs": ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-x\n+B\n", ["not in the file", "'b'", "'x'"]),
    "twice": ("a\nb\n" * 2, "@@ -9,2 +9,2 @@\n a\n-b\n+B\n", ["its lines are at 1, 3", "give more context"]),
    "context next to the change": ("a\nX\nc\nd\n", "@@ -1,4 +1,4 @@\n a\n b\n-c\n+C\n d\n", ["not in the file"]),
    "beyond the end": ("a\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", ["the file ends there, where the hunk has 'b' next"]),
    "no context": ("a\nb\n", "@@ -1,0 +2 @@\n+x\n", ["no context line"]),
    "backwards": (TEN, "@@ -8 +8 @@\n-line 8\n+x\n@@ -2 +2 @@\n-line 2\n+y\n", ["hunk 2 of 2", "2, before an earlier"]),
    "the same lines again": ("a\nb\n", "@@ -1 +1 @@\n-a\n+x\n@@ -1 +1 @@\n-a\n+y\n", ["before an earlier hunk"]),
    "a last line that is not last": ("a\nb\nc\n", "@@ -2 +2 @@\n-b\n\\ No newline\n+B\n\\ No newline\n", ["ends with"]),
    "an indentation that cannot be shifted": ("a\nb\n", "@@ -1,2 +1,2 @@\n   a\n-  b\n+B\n", ["cannot be shifted"]),
    "nothing similar": ("a\nb\n", "@@ -1 +1 @@\n-completely other words\n+x\n", ["nothing in it is similar"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "hunks", "parts"), REJECTED.values(), ids=REJECTED.keys())
def test_rejected_hunks(text, hunks, parts):
    with pytest.raises(ToolError) as raised:
        apply_diff(text, hunks)
    assert raised.value.fault.code == "rejected"
    message = str(raised.value)
    assert message.startswith("f: ")
    assert [part for part in parts if part not in message] == [], message


def test_up_to_five_ambiguous_hunks_are_reported():
    hunks = "".join(f"@@ -{n + 20} +{n + 20} @@\n-same {n}\n+x\n" for n in range(1, 8))
    with pytest.raises(ToolError, match="hunk 3 of 7") as raised:
        apply_diff("".join(f"same {n}\n" for n in range(1, 8)) * 2, hunks)
    assert "(2 more hunks do not apply)" in str(raised.value)


def test_only_the_first_hunk_that_fits_nowhere_is_reported():
    hunks = "".join(f"@@ -{n} +{n} @@\n-line number {n}!\n+x\n" for n in range(1, 8))
    with pytest.raises(ToolError, match="hunk 1 of 7") as raised:
        apply_diff(TEN, hunks)
    assert "hunk 2" not in str(raised.value)
    assert "not checked: 6" in str(raised.value)


BEGIN_PATCHES = {
    "a line": ("foo\nbar\n", "@@\n foo\n-bar\n+baz\n", "foo\nbaz\n"),
    "two chunks": ("foo\nbar\nbaz\nqux\n", "@@\n foo\n-bar\n+BAR\n@@\n baz\n-qux\n+QUX\n", "foo\nBAR\nbaz\nQUX\n"),
    "chunks far apart": (
        "a\nb\nc\nd\ne\nf\n",
        "@@\n a\n-b\n+B\n@@\n c\n d\n-e\n+E\n@@\n f\n+g\n*** End of File\n",
        "a\nB\nc\nd\nE\nf\ng\n",
    ),
    "an anchor decides": (
        "class A:\n  def f():\n    x\nclass B:\n  def f():\n    x\n",
        "@@ class B:\n   def f():\n-    x\n+    y\n",
        "class A:\n  def f():\n    x\nclass B:\n  def f():\n    y\n",
    ),
    "anchors in a row": (
        "class A:\n  def f():\n    x\nclass B:\n  def g():\n    x\n  def f():\n    x\n",
        "@@ class B:\n@@   def f():\n-    x\n+    y\n",
        "class A:\n  def f():\n    x\nclass B:\n  def g():\n    x\n  def f():\n    y\n",
    ),
    "an anchor that is not indented as the file": (
        "class B:\n    def f(self):\n        x\n",
        "@@ def f(self):\n-        x\n+        y\n",
        "class B:\n    def f(self):\n        y\n",
    ),
    "an anchor twice, lines once": ("f\na\nf\nb\n", "@@ f\n-b\n+c\n", "f\na\nf\nc\n"),
    "the end of the file": ("x\nend\ny\nend\n", "@@\n-end\n+last\n*** End of File\n", "x\nend\ny\nlast\n"),
    "lines alone go to the end": ("a\nb\n", "@@\n+c\n", "a\nb\nc\n"),
    "lines alone after an anchor": ("a\nb\n", "@@ a\n+x\n", "a\nx\nb\n"),
    "lines alone, then a change before them": (
        "line1\nline2\nline3\n",
        "@@\n+after-context\n+second-line\n@@\n line1\n-line2\n-line3\n+line2-replacement\n",
        "line1\nline2-replacement\nafter-context\nsecond-line\n",
    ),
    "blank lines that an editor stripped": ("a\n\nb\nc\n", "@@\n a\n\n-b\n+B\n c\n", "a\n\nB\nc\n"),
    "the first chunk without a header": ("foo\nbar\n", " foo\n-bar\n+baz\n", "foo\nbaz\n"),
    "only deletion": ("line1\nline2\nline3\n", "@@\n line1\n-line2\n line3\n", "line1\nline3\n"),
    "at the first line": ("only\nother\n", "@@\n-only\n+ONLY\n other\n", "ONLY\nother\n"),
    "CRLF in the file": ("a\r\nb\r\n", "@@\n a\n-b\n+c\n", "a\r\nc\r\n"),
    "no final newline, kept": ("no newline at end", "@@\n-no newline at end\n+first\n+second\n", "first\nsecond"),
    "a missing empty last line": ("a\nb\n", "@@\n a\n-b\n+c\n \n", "a\nc\n"),
    "a missing empty first line": ("a\nb\n", "@@\n \n-a\n+c\n b\n", "c\nb\n"),
}


@pytest.mark.parametrize(("text", "hunks", "after"), BEGIN_PATCHES.values(), ids=BEGIN_PATCHES.keys())
def test_begin_patch_format(text, hunks, after):
    assert apply_begin_patch(text, hunks) == after


@pytest.mark.parametrize(
    ("text", "hunks", "message"),
    [
        ("a\nb\n", "@@ class X:\n-b\n+c\n", "its anchor line 'class X:' is not in the file"),
        ("a\na\nb\n", "@@ a\n+x\n", "anchor line is in the file more than once"),
        ("a\nb\na\nb\n", "@@\n-b\n+c\n", "its lines are at 2, 4"),
        ("say “hi”\n", '@@\n-say "hi"\n+say\n', "only typographic characters differ"),
    ],
)
def test_rejected_begin_patch_hunks(text, hunks, message):
    with pytest.raises(ToolError) as raised:
        apply_begin_patch(text, hunks)
    assert message in str(raised.value)


@pytest.mark.timeout(20)
def test_hunk_that_nearly_matches_everywhere_is_rejected_quickly():
    removed = "-x\n" * 999 + "- x\n"
    with pytest.raises(ToolError):
        apply_diff("  x\n" * 200_000, f"@@ -1,1000 +1 @@\n{removed}+y\n")
