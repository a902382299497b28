"""The list tool: a folder's entries, and the tree below it."""

import pytest

FILES = (
    "src/app/main.py",
    "src/app/deep/er/x.py",
    "src/lib.py",
    "README.md",
    ".env.example",
    "build/out.o",
    ".git/config",
)


@pytest.fixture
def tree(room):
    for path in FILES:
        room.file(path, "x\n")
    room.file(".gitignore", "build/\n")
    (room.root / "link").symlink_to(room.root.parent / "outside")
    return room


async def test_entries_of_a_folder(tree):
    result = await tree.ok("list")
    assert result.for_model.splitlines() == [
        ".env.example  2",
        ".gitignore  7",
        "README.md  2",
        "build/",
        "link@",
        "src/",
    ]
    assert result.data["items"][2] == {"name": "README.md", "path": "README.md", "is_dir": False, "size_bytes": 2}
    assert result.data["items"][-1] == {"name": "src", "path": "src", "is_dir": True, "size_bytes": 0}
    assert (await tree.ok("list", path="src")).data["items"][0]["path"] == "src/app"


@pytest.mark.req("TL-7")
async def test_the_tree_leaves_out_what_git_ignores_and_closes_what_is_too_deep(tree, searcher):
    told = (await tree.ok("list", depth=3)).for_model
    assert told.splitlines() == [
        ".env.example",
        ".gitignore",
        "README.md",
        "link@",
        "src/",
        "  app/",
        "    deep/  (1 files)",
        "    main.py",
        "  lib.py",
    ]
    below = await tree.ok("list", path="src", depth=2)
    assert below.for_model.splitlines() == ["app/", "  deep/  (1 files)", "  main.py", "lib.py"]
    assert below.data["items"][1]["path"] == "src/app/deep"


@pytest.mark.req("TL-1")
async def test_the_tree_shows_links_as_a_folder_does(room):
    room.file("d/e/f.txt")
    room.file(".gitignore", "hidden\n")
    for name, target in (("d/to", "e"), ("d/e/gone", "nowhere"), ("loop", "."), ("hidden", "d")):
        (room.root / name).symlink_to(target)
    result = await room.ok("list", depth=2)
    assert result.for_model.splitlines() == [".gitignore", "d/", "  e/  (1 files)", "  to@", "loop@"]
    assert result.data["items"][3] == {"name": "to", "path": "d/to", "is_dir": False, "size_bytes": None}
    assert (await room.ok("glob", pattern="**")).for_model.splitlines() == [".gitignore", "d/e/f.txt"]


async def test_more_than_the_limit_is_counted(room, searcher):
    for number in range(20):
        room.file(f"d/f{number:02}")
    result = await room.ok("list", path="d", limit=5)
    assert result.for_model.splitlines()[-1] == "[15 more entries]"
    assert (result.data["count"], len(result.data["items"])) == (20, 5)
    assert (await room.ok("list", path="d", depth=2, limit=5)).for_model.endswith("[15 more entries]")


@pytest.mark.req("TL-1")
async def test_the_tree_shows_folders_that_hold_nothing(room):
    for folder in ("empty", "a/b/c", "a/d", ".git/refs", "build/x"):
        (room.root / folder).mkdir(parents=True)
    (room.root / "build" / "out").symlink_to("x")
    room.file("a/d/e.txt")
    room.file(".gitignore", "build/\n")
    told = (await room.ok("list", depth=2)).for_model
    assert told.splitlines() == [".gitignore", "a/", "  b/", "  d/  (1 files)", "empty/"]
    assert (await room.ok("list", path="build", depth=2)).for_model.splitlines() == ["out@", "x/"]
    assert (await room.ok("list", path="empty", depth=2)).for_model == "(empty)"
    assert (await room.ok("list", path="", depth=2)).for_model == told


async def test_an_empty_folder(room):
    assert (await room.ok("list")).for_model == "(empty)"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"path": "gone"}, "no such file or directory"),
        ({"path": "a.txt"}, "this is a file; read it instead"),
        ({"path": "a.txt", "depth": 3}, "this is a file; read it instead"),
        ({"path": "../outside"}, "outside the workspace"),
        ({"path": "link"}, "outside the workspace"),
        ({"path": "link", "depth": 2}, "outside the workspace"),
        ({"depth": "deep"}, "depth must be a whole number"),
        ({"sort": "size"}, "list takes no 'sort'"),
    ],
    ids=str,
)
async def test_what_cannot_be_listed(room, given, sentence):
    room.file("a.txt")
    (room.root / "link").symlink_to(room.root.parent / "outside")
    assert sentence in await room.fails("list", **given)
