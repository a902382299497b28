"""The list tool: entries of a folder, and the tree below it."""

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
def tree(harness):
    for path in FILES:
        harness.file(path, "x\n")
    harness.file(".gitignore", "build/\n")
    (harness.root / "link").symlink_to(harness.root.parent / "outside")
    return harness


async def test_folder_entries(tree):
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
async def test_tree_omits_ignored_files_and_collapses_deep_folders(tree, searcher):
    output = (await tree.ok("list", depth=3)).for_model
    assert output.splitlines() == [
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
async def test_tree_shows_links(harness):
    harness.file("d/e/f.txt")
    harness.file(".gitignore", "hidden\n")
    for name, target in (("d/to", "e"), ("d/e/gone", "nowhere"), ("loop", "."), ("hidden", "d")):
        (harness.root / name).symlink_to(target)
    result = await harness.ok("list", depth=2)
    assert result.for_model.splitlines() == [".gitignore", "d/", "  e/  (1 files)", "  to@", "loop@"]
    assert result.data["items"][3] == {"name": "to", "path": "d/to", "is_dir": False, "size_bytes": None}
    assert (await harness.ok("glob", pattern="**")).for_model.splitlines() == [".gitignore", "d/e/f.txt"]


async def test_omitted_entries_are_counted(harness, searcher):
    for number in range(20):
        harness.file(f"d/f{number:02}")
    result = await harness.ok("list", path="d", limit=5)
    assert result.for_model.splitlines()[-1] == "[15 more entries]"
    assert (result.data["count"], len(result.data["items"])) == (20, 5)
    assert (await harness.ok("list", path="d", depth=2, limit=5)).for_model.endswith("[15 more entries]")


@pytest.mark.req("TL-1")
async def test_tree_shows_empty_folders(harness):
    for folder in ("empty", "a/b/c", "a/d", ".git/refs", "build/x"):
        (harness.root / folder).mkdir(parents=True)
    (harness.root / "build" / "out").symlink_to("x")
    harness.file("a/d/e.txt")
    harness.file(".gitignore", "build/\n")
    output = (await harness.ok("list", depth=2)).for_model
    assert output.splitlines() == [".gitignore", "a/", "  b/", "  d/  (1 files)", "empty/"]
    assert (await harness.ok("list", path="build", depth=2)).for_model.splitlines() == ["out@", "x/"]
    assert (await harness.ok("list", path="empty", depth=2)).for_model == "(empty)"
    assert (await harness.ok("list", path="", depth=2)).for_model == output


async def test_empty_folder(harness):
    assert (await harness.ok("list")).for_model == "(empty)"


@pytest.mark.parametrize(
    ("arguments", "message"),
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
async def test_invalid_calls(harness, arguments, message):
    harness.file("a.txt")
    (harness.root / "link").symlink_to(harness.root.parent / "outside")
    assert message in await harness.fails("list", **arguments)
