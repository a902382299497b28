"""Names that cannot be shown have one spelling, whoever tells them, and every tool takes it back."""

import os

import pytest

NAMES = {
    "line end": (b"two\nlines.txt", r"two\nlines.txt"),
    "carriage return and tab": (b"a\rb\tc.txt", r"a\rb\tc.txt"),
    "no UTF-8": (b"bad\xff.txt", r"bad\xff.txt"),
    "no UTF-8 in a folder": (b"f\xe4lle/a.txt", r"f\xe4lle/a.txt"),
    "a long name in another encoding": (b"\xc8\xd5" * 100, r"\xc8\xd5" * 100),
    "escape": (b"red\x1b[31m.txt", r"red\x1b[31m.txt"),
    "unseen letter": ("zero\u200bwidth.txt".encode(), r"zero\u200bwidth.txt"),
    "unseen letter of another plane": ("tag\U000e0041.txt".encode(), r"tag\U000e0041.txt"),
    "control letter": ("next\u0085.txt".encode(), r"next\u0085.txt"),
    "backslash": (b"back\\slash.txt", r"back\slash.txt"),
    "what looks like an escape": (b"a\\nb.txt", r"a\\nb.txt"),
    "two backslashes": (b"a\\\\b.txt", r"a\\\\b.txt"),
    "an escape nobody writes": (b"by\\x2dlabel.txt", r"by\x2dlabel.txt"),
    "backslash and line end": (b"a\\b\nc.txt", r"a\\b\nc.txt"),
}


@pytest.fixture(params=NAMES.values(), ids=NAMES.keys())
def odd(request, room):
    raw, shown = request.param
    path = os.path.join(os.fsencode(room.root), raw)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"needle one\nneedle two\n")
    return path, shown


@pytest.mark.req("TL-7")
async def test_searches_tell_one_spelling(room, odd, searcher):
    _, shown = odd
    lines = (await room.ok("grep", pattern="needle")).data["matches"]
    assert [(line["path"], line["line"]) for line in lines] == [(shown, 1), (shown, 2)]
    around = (await room.ok("grep", pattern="two", context=1)).for_model
    assert around == f"{shown}-1-needle one\n{shown}:2:needle two"
    assert (await room.ok("grep", pattern="needle", mode="count")).for_model == f"{shown}:2"
    assert (await room.ok("glob", pattern="**")).data["matches"] == [shown]
    items = (await room.ok("list", depth=5)).data["items"]
    assert [item["path"] for item in items if not item["is_dir"]] == [shown]
    folder, _, name = shown.rpartition("/")
    assert [item["name"] for item in (await room.ok("list", path=folder or ".")).data["items"]] == [name]


@pytest.mark.req("TL-7")
async def test_a_search_may_begin_there(room, odd, searcher):
    _, shown = odd
    folder, _, _ = shown.rpartition("/")
    for place in (shown, folder or "."):
        found = (await room.ok("grep", pattern="two", path=place)).data["matches"]
        assert [(line["path"], line["line"]) for line in found] == [(shown, 2)]
    assert (await room.ok("glob", pattern="*", path=folder or ".")).data["matches"] == [shown]


@pytest.mark.req("FS-4", "FS-5", "TL-5", "TL-6")
async def test_every_tool_takes_it_back(room, odd):
    path, shown = odd

    def content():
        with open(path, "rb") as file:
            return file.read()

    assert (await room.ok("read", path=shown)).data["path"] == shown
    assert (await room.ok("stat", path=shown)).data["path"] == shown
    await room.ok("edit", path=shown, old="one", new="1")
    assert content() == b"needle 1\nneedle two\n"
    patch = f"*** Begin Patch\n*** Update File: {shown}\n@@\n-needle 1\n+needle 3\n*** End Patch"
    assert (await room.ok("patch", patch=patch)).data["files"][0]["path"] == shown
    assert content() == b"needle 3\nneedle two\n"
    written = (await room.ok("write", path=shown, content="whole\n")).data
    assert (written["path"], written["operation"], content()) == (shown, "updated", b"whole\n")
    assert [name for _, _, names in os.walk(os.fsencode(room.root)) for name in names] == [os.path.basename(path)]


@pytest.mark.req("TL-5")
async def test_a_diff_of_ours_comes_back_as_a_patch(room, odd):
    path, shown = odd
    change = (await room.ok("edit", path=shown, old="one", new="1")).data["diff"]
    back = change.replace("-needle one", "-needle 1").replace("+needle 1", "+needle one")
    await room.ok("patch", patch=back)
    with open(path, "rb") as file:
        assert file.read() == b"needle one\nneedle two\n"


@pytest.mark.req("TL-5")
@pytest.mark.parametrize("name", [r'"a/bad\377.txt"', r"a/bad\xff.txt"])
async def test_git_spells_it_in_its_own_way(room, name):
    path = os.path.join(os.fsencode(room.root), b"bad\xff.txt")
    with open(path, "wb") as file:
        file.write(b"a\n")
    await room.ok("patch", patch=f"--- {name}\n+++ {name.replace('a/', 'b/', 1)}\n@@ -1 +1 @@\n-a\n+b\n")
    with open(path, "rb") as file:
        assert file.read() == b"b\n"


async def test_two_names_of_one_look_are_told_apart(room, searcher):
    (room.root / "a\nb").write_text("needle line end\n")
    (room.root / r"a\nb").write_text("needle backslash\n")
    found = {line["path"]: line["text"] for line in (await room.ok("grep", pattern="needle")).data["matches"]}
    assert found == {r"a\nb": "needle line end", r"a\\nb": "needle backslash"}
    for shown, text in found.items():
        assert (await room.ok("read", path=shown)).data["content"] == text


async def test_a_new_name_is_taken_as_it_is(room):
    await room.ok("write", path=r"new\name.txt", content="x\n")
    assert os.listdir(room.root) == [r"new\name.txt"]
    assert (await room.ok("read", path=r"new\name.txt")).data["content"] == "x"


@pytest.mark.req("FS-1")
async def test_no_spelling_leaves_the_workspace(room):
    for path in (r"\x2e\x2e/etc/passwd", r"..\x2fetc", r"a\x00b", r"\u002e\u002e/x", r"\ud800", r"\U00110000"):
        assert (await room.call("read", {"path": path})).status in ("failed", "denied")
