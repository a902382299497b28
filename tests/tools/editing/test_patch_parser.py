"""Parsing patches as people, tools and models write them, and errors for invalid ones."""

import pytest

from ostler.core.errors import ToolError
from ostler.tools.editing.diff_paths import git_names, header_name, strip_prefixes
from ostler.tools.editing.patch_parser import MAX_CHARACTERS, parse_patch

pytestmark = pytest.mark.req("TL-5")


def parse_single(patch: str):
    (file,) = parse_patch(patch)
    return file


def body(hunk) -> list[str]:
    return [line.sign + line.text for line in hunk.lines]


HUNK = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"

NAMES = {
    "a and b": ("--- a/x.py\n+++ b/x.py\n", "x.py"),
    "no prefix": ("--- x.py\n+++ x.py\n", "x.py"),
    "other trees": ("--- old-1.0/src/x.py\n+++ new-1.1/src/x.py\n", "src/x.py"),
    "index and work tree": ("diff --git i/x.py w/x.py\n--- i/x.py\n+++ w/x.py\n", "x.py"),
    "only one prefix": ("--- a/x.py\n+++ x.py\n", "x.py"),
    "a folder called a": ("--- a/x.py\n+++ a/x.py\n", "a/x.py"),
    "a time after a tab": ("--- a/x.py\t2024-01-01 10:00:00.000 +0000\n+++ b/x.py\t2024-01-02 10:00:00\n", "x.py"),
    "a time after spaces": ("--- a/x.py 2024-01-01 10:00:00\n+++ b/x.py 2024-01-01 10:00:00\n", "x.py"),
    "a revision": ("Index: x.py\n====\n--- x.py\t(revision 12)\n+++ x.py\t(working copy)\n", "x.py"),
    "blanks in the name": ("--- a/my file.py\n+++ b/my file.py\n", "my file.py"),
    "quoted": ('--- "a/t\\303\\244b\\there"\n+++ "b/t\\303\\244b\\there"\n', "täb\there"),
    "git": ("diff --git a/x.py b/x.py\nindex 123..456 100644\n--- a/x.py\n+++ b/x.py\n", "x.py"),
    "carriage returns": ("--- a/x.py\r\n+++ b/x.py\r\n", "x.py"),
    "a mail before it": ("From 1 Mon\nSubject: [PATCH] x\n\n---\n x.py | 2 +-\n\n--- a/x.py\n+++ b/x.py\n", "x.py"),
}


@pytest.mark.parametrize(("headers", "path"), NAMES.values(), ids=NAMES.keys())
def test_headers(headers, path):
    file = parse_single(headers + HUNK)
    assert (file.operation, file.path, len(file.hunks)) == ("update", path, 1)
    assert body(file.hunks[0]) == [" a", "-b", "+c"]


BODIES = {
    "right counts": ("@@ -1,2 +1,2 @@\n a\n-b\n+c\n", [" a", "-b", "+c"]),
    "a heading": ("@@ -1,2 +1,2 @@ def f():\n a\n-b\n+c\n", [" a", "-b", "+c"]),
    "counts omitted": ("@@ -1 +1 @@\n-b\n+c\n", ["-b", "+c"]),
    "counts too small": ("@@ -1,1 +1,1 @@\n a\n-b\n+c\n", [" a", "-b", "+c"]),
    "counts too large": ("@@ -1,9 +1,9 @@\n a\n-b\n+c\n", [" a", "-b", "+c"]),
    "no numbers": ("@@\n a\n-b\n+c\n", [" a", "-b", "+c"]),
    "dots for numbers": ("@@ ... @@\n a\n-b\n+c\n", [" a", "-b", "+c"]),
    "a fence": ("@@ -1,2 +1,2 @@\n a\n-b\n+c\n```\nThat is all.\n", [" a", "-b", "+c"]),
    "a fence, wrong counts": ("@@ -1,5 +1,5 @@\n a\n-b\n+c\n```\nThat is all.\n", [" a", "-b", "+c"]),
    "prose after wrong counts": ("@@ -1,5 +1,5 @@\n a\n-b\n+c\n\nThat is all.\n", [" a", "-b", "+c"]),
    "an empty line of context": ("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", [" a", " ", "-b", "+c"]),
    "an empty line, wrong counts": ("@@ -1 +1 @@\n a\n\n-b\n+c\n\n", [" a", " ", "-b", "+c"]),
    "a missing sign": ("@@ -1,3 +1,3 @@\n a\n\tb\n-b\n+c\n", [" a", " \tb", "-b", "+c"]),
    "dashes that are content at the end": (
        "@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n@@ -9 +9 @@\n-x\n+y\n",
        [" a", "--- b", "+++ c"],
    ),
    "a quote that is content": (
        '@@ -1,2 +1,2 @@\n a\n--- "b\n+++ "b\n@@ -9 +9 @@\n-x\n+y\n',
        [" a", '--- "b', '+++ "b'],
    ),
    "a signature, counted as a line": ("@@ -1,3 +1,2 @@\n a\n-b\n+c\n-- \n2.39.5\n", [" a", "-b", "+c"]),
    "dashes that are content": ("@@ -1,3 +1,3 @@\n a\n--- b\n+++ c\n d\n", [" a", "--- b", "+++ c", " d"]),
    "a signature": ("@@ -1,2 +1,2 @@\n a\n-b\n+c\n-- \n2.39.5\n", [" a", "-b", "+c"]),
    "a signature, wrong counts": ("@@ -1,7 +1,7 @@\n a\n-b\n+c\n-- \n2.39.5\n", [" a", "-b", "+c"]),
    "no final newline": ("@@ -1,2 +1,2 @@\n a\n-b\n+c", [" a", "-b", "+c"]),
    "a backslash that is content": ("@@ -1,2 +1,2 @@\n \\begin\n-b\n+c\n", [" \\begin", "-b", "+c"]),
}


@pytest.mark.parametrize(("hunk", "lines"), BODIES.values(), ids=BODIES.keys())
def test_hunk_bodies(hunk, lines):
    hunk_read, *_ = parse_single(f"--- a/x\n+++ b/x\n{hunk}").hunks
    assert body(hunk_read) == lines


def test_fenced_patch_of_several_files():
    patch = f"Here:\n\n```diff\n--- a/x\n+++ b/x\n{HUNK}--- a/y\n+++ b/y\n{HUNK}```\nDone.\n"
    assert [file.path for file in parse_patch(patch)] == ["x", "y"]


def test_files_are_separated_despite_wrong_counts():
    wrong = "@@ -1 +1 @@\n a\n-b\n+c\n"
    patch = f"--- a/x\n+++ b/x\n{wrong}{wrong}--- a/y\n+++ b/y\n{wrong}diff --git a/z b/z\n--- a/z\n+++ b/z\n{wrong}"
    assert [(file.path, len(file.hunks)) for file in parse_patch(patch)] == [("x", 2), ("y", 1), ("z", 1)]


NEXT_FILE = "--- a/y\n+++ b/y\n@@ -1,2 +1,2 @@\n d\n-e\n+f\n"
MISCOUNTED = {
    f"{old},{new}{' ' + label if label else ''}": (f"@@ -1,{old} +1,{new} @@\n a\n-b\n+c\n{between}", NEXT_FILE)
    for old in (1, 2, 3, 4, 9)
    for new in (1, 2, 3, 4, 9)
    for label, between in (("", ""), ("blank", "\n"), ("git", "diff --git a/y b/y\nindex 1..2 100644\n"))
}


@pytest.mark.req("TL-5")
@pytest.mark.parametrize(("hunk", "next_file"), MISCOUNTED.values(), ids=MISCOUNTED.keys())
def test_wrong_count_does_not_include_the_next_file(hunk, next_file):
    first, second = parse_patch(f"--- a/x\n+++ b/x\n{hunk}{next_file}")
    assert [line for line in body(first.hunks[0]) if line != " "] == [" a", "-b", "+c"]
    assert (second.path, body(second.hunks[0])) == ("y", [" d", "-e", "+f"])


@pytest.mark.req("TL-5")
@pytest.mark.parametrize(
    "next_file",
    [
        "--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+f\n",
        "--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-f\n",
        '--- "a/y"\n+++ "b/y"\n@@ -1 +1 @@\n-e\n+f\n',
        "--- y\t2024-01-01 10:00:00\n+++ y\t2024-01-02 10:00:00\n@@ -1 +1 @@\n-e\n+f\n",
    ],
)
def test_any_header_ends_a_hunk_with_too_large_counts(next_file):
    first, second = parse_patch(f"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n{next_file}")
    assert body(first.hunks[0]) == [" a", "-b", "+c"]
    assert second.path == "y"


@pytest.mark.req("TL-5")
def test_changes_after_an_unsigned_line_are_parsed():
    file = parse_single("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\nd\n-e\n+f\n")
    assert [body(hunk) for hunk in file.hunks] == [[" a", "-b", "+c", " d", "-e", "+f"]]


@pytest.mark.req("TL-5")
def test_two_begin_patch_blocks_are_both_parsed():
    patch = "*** Begin Patch\n*** Delete File: {}\n*** End Patch\n"
    assert [file.path for file in parse_patch(patch.format("x") + "\nand\n" + patch.format("y"))] == ["x", "y"]


@pytest.mark.req("TL-5")
@pytest.mark.parametrize(
    "patch",
    [
        "--- a/x\n+++ b/x\n@@ -1,2 +1,4 @@\n a\n+*** Begin Patch\n+*** End Patch\n b\n",
        "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n+*** Begin Patch\n+*** End Patch\n b\n",
        "*** Begin Patch\n*** Update File: x\n@@\n a\n+*** Begin Patch\n+*** End Patch\n b\n*** End Patch\n",
    ],
)
def test_begin_patch_lines_inside_a_hunk_are_content(patch):
    assert body(parse_single(patch).hunks[0]) == [" a", "+*** Begin Patch", "+*** End Patch", " b"]


def test_missing_newline_marker():
    (hunk,) = parse_single("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n\\ No newline at end of file\n+c\n\\ No newline\n").hunks
    assert [line.end for line in hunk.lines] == ["", ""]


def test_crs_on_all_lines_of_a_patch_are_removed():
    patch = f"--- a/x\n+++ b/x\n{HUNK}".replace("\n", "\r\n")
    assert [line.end for line in parse_single(patch).hunks[0].lines] == ["\n", "\n", "\n"]


def test_crs_on_some_lines_of_a_patch_are_kept():
    patch = f"--- a/x\n+++ b/x\n{HUNK}".replace("b\n", "b\r\n").replace("/x", "/y")
    assert [line.end for line in parse_single(patch).hunks[0].lines] == ["\n", "\r\n", "\n"]


GIT = {
    "new": ("diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a", ("create", "x", "")),
    "new and empty": ("diff --git a/x b/x\nnew file mode 100755\nindex 0..1\n", ("create", "x", "")),
    "new without git": ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", ("create", "x", "")),
    "gone": ("diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 @@\n-a", ("delete", "x", "")),
    "deleted and empty": ("diff --git a/x b/x\ndeleted file mode 100644\nindex 0..1\n", ("delete", "x", "")),
    "renamed": ("diff --git a/x b/y z\nsimilarity index 100%\nrename from x\nrename to y z\n", ("rename", "x", "y z")),
    "renamed, quoted": ('diff --git a/x "b/\\ty"\nrename from x\nrename to "\\ty"\n', ("rename", "x", "\ty")),
    "copied": ("diff --git a/x b/y\ncopy from x\ncopy to y\n", ("copy", "x", "y")),
    "changed mode": ("diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n", ("update", "x y", "")),
}  # fmt: skip


@pytest.mark.parametrize(("patch", "expected"), GIT.values(), ids=GIT.keys())
def test_git_headers(patch, expected):
    file = parse_single(patch)
    assert (file.operation, file.path, file.new_path) == expected


def test_modes():
    assert parse_single("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n").executable is True
    assert parse_single("diff --git a/x b/x\nold mode 100755\nnew mode 100644\n").executable is False
    assert parse_single(f"--- a/x\n+++ b/x\n{HUNK}").executable is None


BAD = {
    "empty": ("  \n", "the patch is empty"),
    "no patch": ("please change the file\n", "names no file"),
    "a hunk without a file": (HUNK, "comes before any file"),
    "no change": ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n a\n", "line 3 of the patch: this hunk has no line that begins"),
    "headers alone": ("--- a/x\n+++ b/x\n", "it changes nothing"),
    "git headers alone": ("diff --git a/x b/x\nindex 1..2\n", "it changes nothing"),
    "binary": ("diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\n", "line 3 of the patch: it changes"),
    "binary, reported": ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "a binary file"),
    "a link": ("diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n", "a symbolic link"),
    "a submodule": ("diff --git a/x b/x\nnew file mode 160000\n", "a submodule"),
    "an invalid mode": ("diff --git a/x b/x\nnew file mode rwx\n", "'rwx' is not a supported mode"),
    "a mode with more rights": ("diff --git a/x b/x\nold mode 100644\nnew mode 104755\n", "100755 for an executable"),
    "the mode of a folder": ("diff --git a/x b/x\nnew file mode 040755\n", "'040755' is not a supported mode"),
    "a truncated second block": (
        "*** Begin Patch\n*** Delete File: x\n*** End Patch\n*** Begin Patch\n*** Delete File: y\n", "truncated"),
    "a context diff": ("*** a/x\n--- b/x\n***************\n*** 1 ****\n! a\n", "a context diff"),
    "a merge": ("--- a/x\n+++ b/x\n@@@ -1,2 -1,2 +1,2 @@@\n  a\n- b\n", "a combined diff"),
    "/dev/null to /dev/null": ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "name no file"),
    "an unclosed quote": ('--- "a/x\n+++ "b/x\n' + HUNK, "no closing quote"),
    "an unknown escape": ('--- "a/\\q"\n+++ "b/\\q"\n' + HUNK, "unknown escape"),
    "too long": ("x" * (MAX_CHARACTERS + 1), "split it"),
    "too many files": ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" * 1001, "the maximum is 1,000"),
    "truncated": ("*** Begin Patch\n*** Update File: x\n@@\n-a\n+b\n", "may be truncated"),
    "no begin": ("*** Update File: x\n@@\n-a\n+b\n*** End Patch\n", "no '*** Begin Patch' line"),
    "nothing inside": ("*** Begin Patch\n*** End Patch\n", "changes no file"),
    "an unknown part": ("*** Begin Patch\n*** Rename File: x\n*** End Patch\n", "line 2 of the patch"),
    "no name": ("*** Begin Patch\n*** Delete File:\n*** End Patch\n", "the file has no name"),
    "an update of nothing": ("*** Begin Patch\n*** Update File: x\n*** End Patch\n", "it changes nothing"),
    "a new file without signs": ("*** Begin Patch\n*** Add File: x\nhello\n*** End Patch\n", "must begin with +"),
    "a hunk without a change": ("*** Begin Patch\n*** Update File: x\n@@\n a\n*** End Patch\n", "no line that begins"),
}  # fmt: skip


@pytest.mark.parametrize(("patch", "message"), BAD.values(), ids=BAD.keys())
def test_invalid_patch_is_rejected(patch, message):
    with pytest.raises(ToolError) as raised:
        parse_patch(patch)
    assert raised.value.fault.code == "bad_patch"
    assert message in str(raised.value)


def test_begin_patch_format():
    files = parse_patch(
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new/a.txt\n+one\n+\n+two\n"
        "*** Update File: b.txt\n*** Move to: c.txt\n@@ class A:\n@@ def f():\n ctx\n-old\n+new\n@@\n-x\n+y\n"
        "*** End of File\n*** Delete File: d.txt\n*** End Patch\nEOF\n"
    )
    assert [(file.operation, file.path, file.new_path) for file in files] == [
        ("create", "new/a.txt", ""),
        ("rename", "b.txt", "c.txt"),
        ("delete", "d.txt", ""),
    ]
    assert body(files[0].hunks[0]) == ["+one", "+", "+two"]
    first, second = files[1].hunks
    assert (first.anchors, first.at_end, body(first)) == (("class A:", "def f():"), False, [" ctx", "-old", "+new"])
    assert (second.anchors, second.at_end, body(second)) == ((), True, ["-x", "+y"])
    assert files[2].without_content


@pytest.mark.parametrize(
    ("inside", "hunks"),
    [
        ("-a\n+b\n", [["-a", "+b"]]),
        ("@@\n-a\n+b\n\n@@\n-c\n+d\n", [["-a", "+b"], ["-c", "+d"]]),
        ("@@ -1,3 +1,3 @@ def f():\n-a\n+b\n", [["-a", "+b"]]),
        ("@@\n a\n\n-b\n+c\n", [[" a", " ", "-b", "+c"]]),
        ("@@\n *** End Patch\n-b\n+c\n", [[" *** End Patch", "-b", "+c"]]),
    ],
)
def test_hunks_in_begin_patch_format(inside, hunks):
    file = parse_single(f"*** Begin Patch\n*** Update File: x\n{inside}*** End Patch\n")
    assert [body(hunk) for hunk in file.hunks] == hunks


def test_diff_that_contains_patch_markers():
    patch = "--- a/doc.md\n+++ b/doc.md\n@@ -1,2 +1,2 @@\n *** Begin Patch\n-*** End Patch\n+*** Finish Patch\n"
    assert body(parse_single(patch).hunks[0]) == [" *** Begin Patch", "-*** End Patch", "+*** Finish Patch"]


def test_anchor_with_closing_marker():
    file = parse_single("*** Begin Patch\n*** Update File: x\n@@ def f(): @@\n-a\n+b\n*** End Patch\n")
    assert file.hunks[0].anchors == ("def f():",)


@pytest.mark.parametrize(
    ("old", "new", "stripped"),
    [
        ("a/x", "b/x", ("x", "x")),
        ("a/x", "b/y", ("x", "y")),
        ("a/x", "/dev/null", ("x", "/dev/null")),
        ("/dev/null", "b/x", ("/dev/null", "x")),
        ("x", "x", ("x", "x")),
        ("x.orig", "x", ("x.orig", "x")),
        ("a", "b", ("a", "b")),
        ("x/y", "b/x/y", ("x/y", "x/y")),
        ("src/x", "src/y", ("src/x", "src/y")),
    ],
)
def test_names_without_prefixes(old, new, stripped):
    assert strip_prefixes(old, new) == stripped


@pytest.mark.parametrize(
    ("rest", "names"),
    [
        ("a/x b/x", ("a/x", "b/x")),
        ("a/x y b/x y", ("a/x y", "b/x y")),
        ("a/x b/y", ("a/x", "b/y")),
        ('"a/\\tx" "b/\\tx"', ("a/\tx", "b/\tx")),
        ("x y", ("x", "y")),
    ],
)
def test_git_names(rest, names):
    assert git_names(rest, 1) == names


@pytest.mark.parametrize(
    ("rest", "name"),
    [
        ("x\t2024", "x"),
        ('"x\\"y\\\\z\\a\\101"\t2024', 'x"y\\z\x07A'),
        ("x 2024-01-01 10:00:00", "x"),
        ("notes 2024-01-01.md", "notes 2024-01-01.md"),
        ("x (revision 3)", "x"),
    ],
)
def test_header_names(rest, name):
    assert header_name(rest, 1) == name
