"""Escaped paths: every tool shows unprintable file names in the same form, and accepts it."""

import os

import pytest

NAMES = {
    "line break": (b"two\nlines.txt", r"two\nlines.txt"),
    "carriage return and tab": (b"a\rb\tc.txt", r"a\rb\tc.txt"),
    "not UTF-8": (b"bad\xff.txt", r"bad\xff.txt"),
    "folder that is not UTF-8": (b"f\xe4lle/a.txt", r"f\xe4lle/a.txt"),
    "a long name in another encoding": (b"\xc8\xd5" * 100, r"\xc8\xd5" * 100),
    "escape": (b"red\x1b[31m.txt", r"red\x1b[31m.txt"),
    "invisible character": ("zero\u200bwidth.txt".encode(), r"zero\u200bwidth.txt"),
    "invisible character of another plane": ("tag\U000e0041.txt".encode(), r"tag\U000e0041.txt"),
    "control character": ("next\u0085.txt".encode(), r"next\u0085.txt"),
    "backslash": (b"back\\slash.txt", r"back\slash.txt"),
    "text like an escape": (b"a\\nb.txt", r"a\\nb.txt"),
    "two backslashes": (b"a\\\\b.txt", r"a\\\\b.txt"),
    "an unused escape": (b"by\\x2dlabel.txt", r"by\x2dlabel.txt"),
    "backslash and line break": (b"a\\b\nc.txt", r"a\\b\nc.txt"),
}


@pytest.fixture(params=NAMES.values(), ids=NAMES.keys())
def odd_file(request, harness):
    raw, shown = request.param
    path = os.path.join(os.fsencode(harness.root), raw)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"needle one\nneedle two\n")
    return path, shown


@pytest.mark.req("TL-7")
@pytest.mark.sampled(every=2)
async def test_searches_show_the_escaped_path(harness, odd_file, searcher):
    _, shown = odd_file
    lines = (await harness.ok("grep", pattern="needle")).data["matches"]
    assert [(line["path"], line["line"]) for line in lines] == [(shown, 1), (shown, 2)]
    around = (await harness.ok("grep", pattern="two", context=1)).for_model
    assert around == f"{shown}-1-needle one\n{shown}:2:needle two"
    assert (await harness.ok("grep", pattern="needle", mode="count")).for_model == f"{shown}:2"
    assert (await harness.ok("glob", pattern="**")).data["matches"] == [shown]
    items = (await harness.ok("list", depth=5)).data["items"]
    assert [item["path"] for item in items if not item["is_dir"]] == [shown]
    folder, _, name = shown.rpartition("/")
    assert [item["name"] for item in (await harness.ok("list", path=folder or ".")).data["items"]] == [name]


@pytest.mark.req("TL-7")
@pytest.mark.sampled(every=2)
async def test_search_accepts_the_escaped_path(harness, odd_file, searcher):
    _, shown = odd_file
    folder, _, _ = shown.rpartition("/")
    for path_to_search in (shown, folder or "."):
        found = (await harness.ok("grep", pattern="two", path=path_to_search)).data["matches"]
        assert [(line["path"], line["line"]) for line in found] == [(shown, 2)]
    assert (await harness.ok("glob", pattern="*", path=folder or ".")).data["matches"] == [shown]


@pytest.mark.req("FS-4", "FS-5", "TL-5", "TL-6")
async def test_every_tool_accepts_the_escaped_path(harness, odd_file):
    path, shown = odd_file

    def content():
        with open(path, "rb") as file:
            return file.read()

    assert (await harness.ok("read", path=shown)).data["path"] == shown
    assert (await harness.ok("stat", path=shown)).data["path"] == shown
    await harness.ok("edit", path=shown, old="one", new="1")
    assert content() == b"needle 1\nneedle two\n"
    patch = f"*** Begin Patch\n*** Update File: {shown}\n@@\n-needle 1\n+needle 3\n*** End Patch"
    assert (await harness.ok("patch", patch=patch)).data["files"][0]["path"] == shown
    assert content() == b"needle 3\nneedle two\n"
    written = (await harness.ok("write", path=shown, content="whole\n")).data
    assert (written["path"], written["operation"], content()) == (shown, "updated", b"whole\n")
    assert [name for _, _, names in os.walk(os.fsencode(harness.root)) for name in names] == [os.path.basename(path)]


@pytest.mark.req("TL-5")
async def test_shown_diff_can_be_applied_as_a_patch(harness, odd_file):
    path, shown = odd_file
    change = (await harness.ok("edit", path=shown, old="one", new="1")).data["diff"]
    back = change.replace("-needle one", "-needle 1").replace("+needle 1", "+needle one")
    await harness.ok("patch", patch=back)
    with open(path, "rb") as file:
        assert file.read() == b"needle one\nneedle two\n"


@pytest.mark.req("TL-5")
@pytest.mark.parametrize("name", [r'"a/bad\377.txt"', r"a/bad\xff.txt"])
async def test_git_escapes_are_accepted(harness, name):
    path = os.path.join(os.fsencode(harness.root), b"bad\xff.txt")
    with open(path, "wb") as file:
        file.write(b"a\n")
    await harness.ok("patch", patch=f"--- {name}\n+++ {name.replace('a/', 'b/', 1)}\n@@ -1 +1 @@\n-a\n+b\n")
    with open(path, "rb") as file:
        assert file.read() == b"b\n"


async def test_similar_names_are_escaped_differently(harness, searcher):
    (harness.root / "a\nb").write_text("needle line end\n")
    (harness.root / r"a\nb").write_text("needle backslash\n")
    found = {line["path"]: line["text"] for line in (await harness.ok("grep", pattern="needle")).data["matches"]}
    assert found == {r"a\nb": "needle line end", r"a\\nb": "needle backslash"}
    for shown, text in found.items():
        assert (await harness.ok("read", path=shown)).data["content"] == text


async def test_new_name_is_used_unchanged(harness):
    await harness.ok("write", path=r"new\name.txt", content="x\n")
    assert os.listdir(harness.root) == [r"new\name.txt"]
    assert (await harness.ok("read", path=r"new\name.txt")).data["content"] == "x"


@pytest.mark.req("FS-1")
async def test_escapes_cannot_leave_the_workspace(harness):
    for path in (r"\x2e\x2e/etc/passwd", r"..\x2fetc", r"a\x00b", r"\u002e\u002e/x", r"\ud800", r"\U00110000"):
        assert (await harness.call("read", {"path": path})).status in ("failed", "denied")
