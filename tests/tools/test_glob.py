"""The glob tool and glob patterns."""

import pytest

from ostler.core.errors import ToolError
from ostler.tools.search_globs import FileFilter, compile_globs, name_globs, plain_ending, split_globs

FILES = (
    "setup.py",
    "src/app/main.py",
    "src/app/test_main.py",
    "src/web/index.ts",
    "src/web/view.tsx",
    "docs/guide.md",
    ".github/ci.yml",
    "build/out.py",
    ".git/hooks.py",
)


@pytest.fixture
def tree(harness):
    for path in FILES:
        harness.file(path, "x\n")
    harness.file(".gitignore", "build/\n")
    (harness.root / "folder").symlink_to(harness.root.parent / "outside")
    return harness


GLOBS = {
    "*.py": ["setup.py", "src/app/main.py", "src/app/test_main.py"],
    "/*.py": ["setup.py"],
    "./*.py": ["setup.py"],
    "**/*.py": ["setup.py", "src/app/main.py", "src/app/test_main.py"],
    "src/**/*.py": ["src/app/main.py", "src/app/test_main.py"],
    "src/*/index.*": ["src/web/index.ts"],
    "src/web/*.{ts,tsx}": ["src/web/index.ts", "src/web/view.tsx"],
    "{docs,src}/**/*[!sy]": ["docs/guide.md", "src/web/view.tsx"],
    "test_?ain.py": ["src/app/test_main.py"],
    "docs/": ["docs/guide.md"],
    "docs/**": ["docs/guide.md"],
    "**/*.yml": [".github/ci.yml"],
    "gone/**/*.py": [],
    "*.rs": [],
    "secret.txt": [],
    "main.py": ["src/app/main.py"],
    "**/setup.py": ["setup.py"],
    "src/[slug]/main.py": [],
    "src/app": [],
    "*.py, *.md": [],
    "/src/**/main.py": ["src/app/main.py"],
}
NO_MATCH_TEXTS = {
    "*.py, *.md": "No files match. A pattern is one glob; combine several as **/*.{ts,tsx}.",
    "src/app": "No files match: src/app is a folder; use src/app/** for its files.",
    "gone/**/*.py": "No files match: there is no folder gone.",
    "src/[slug]/main.py": r"No files match. [] is a set of characters; for brackets write \[ and \].",
}


@pytest.mark.req("TL-7")
@pytest.mark.parametrize("glob", GLOBS, ids=str)
@pytest.mark.sampled
async def test_globs_find_files(tree, searcher, glob):
    expected = GLOBS[glob]
    result = await tree.ok("glob", pattern=glob)
    assert result.data["matches"] == expected
    assert result.for_model == ("\n".join(expected) or NO_MATCH_TEXTS.get(glob, "No files match."))


async def test_path_limits_the_search_and_results_are_workspace_paths(tree, searcher):
    assert (await tree.ok("glob", pattern="*.ts", path="src")).data["matches"] == ["src/web/index.ts"]
    absolute = f"{tree.root}/src/**/*.ts"
    assert (await tree.ok("glob", pattern=absolute)).data["matches"] == ["src/web/index.ts"]


@pytest.mark.req("TL-10")
async def test_omitted_entries_are_counted(harness, searcher):
    for number in range(12):
        harness.file(f"f{number:02}.txt")
    result = await harness.ok("glob", pattern="*.txt", limit=2)
    assert result.for_model.splitlines() == ["f00.txt", "f01.txt", "[10 more files; narrow the pattern]"]
    assert result.data["count"] == 12


@pytest.mark.req("TL-7")
@pytest.mark.parametrize("pattern", ["*", "**", "**/*"])
async def test_empty_folder_has_no_matches(harness, searcher, pattern):
    (harness.root / "empty").mkdir()
    for path in ("empty", ".", ""):
        result = await harness.ok("glob", pattern=pattern, path=path)
        assert (result.for_model, result.data["count"]) == ("No files match.", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": ""}, "the pattern is empty"),
        ({"pattern": "../*"}, "contains .."),
        ({"pattern": "*.py", "path": "gone"}, "no such file"),
        ({"pattern": "*.py", "path": "folder"}, "outside the workspace"),
        ({"pattern": "*.py", "path": "/etc"}, "outside the workspace"),
        ({"pattern": "x" * 2000}, "too long"),
        ({"pattern": "/etc/*"}, "points outside the workspace; globs are relative to the workspace"),
        ({"pattern": "/etc/hosts", "path": "src"}, "outside the workspace"),
        ({"pattern": "x", "path": "setup.py"}, "setup.py is a file; give a folder as path"),
        ({"pattern": "/"}, "the pattern is empty"),
        ({"pattern": "!*.py"}, "only excludes files"),
        ({"pattern": "[["}, "has an unbalanced bracket"),
        ({"pattern": "src/{a,b"}, "has an unbalanced bracket"),
        ({"pattern": "*.py", "limit": "few"}, "limit must be a whole number"),
        ({}, 'glob needs pattern: send {"pattern":"**/*.py"}'),
        ({"pattern": "*", "path": "setup.py"}, "setup.py is a file; give a folder as path"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_invalid_glob_is_rejected_with_advice(tree, arguments, message):
    assert message in await tree.fails("glob", **arguments)


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*", "a/.b", True),
        ("a*b", "a/b", False),
        ("a**b", "a/x/b", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**", "a", False),
        ("**", "a/b", True),
        ("[a-c].x", "b.x", True),
        ("[!a-c].x", "b.x", False),
        ("[^a-c].x", "d.x", True),
        ("a[", "a[", True),
        ("{a,b", "{a,b", True),
        ("a,b", "a,b", True),
        ("{a,b{c,d}}.x", "bd.x", True),
        (r"\*.x", "*.x", True),
        (r"\*.x", "a.x", False),
        ("(a|b).x", "(a|b).x", True),
        ("a.x", "abx", False),
        ("ü*", "übung", True),
    ],
)
def test_glob_matches(glob, path, matches):
    assert bool(compile_globs([glob]).fullmatch(path.encode())) is matches


def test_hostile_glob_is_linear():
    assert not compile_globs(["*a" * 200 + "b"]).fullmatch(b"a" * 20_000)


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", ["*.py"]),
        ("src/**/test_?.{js,ts}", ["test_*.{js,ts}"]),
        ("docs/", []),
        ("a**b", []),
        ("src/**", []),
        ("{src/a,b}.py", []),
        ("{x/{a}", []),
        ("[ab].py", []),
    ],
)
def test_name_globs(glob, names):
    assert name_globs([glob]) == names


@pytest.mark.parametrize(
    ("glob", "ending"),
    [
        ("*.py", ".py"),
        ("**/*.py", ".py"),
        ("**/main.py", "/main.py"),
        ("main.py", "/main.py"),
        ("*", ""),
        ("**", ""),
        ("**/*", ""),
        ("*.p?", ""),
        ("a*.py", ""),
        ("src/*.py", ""),
        ("/main.py", ""),
    ],
)
def test_plain_ending(glob, ending):
    assert plain_ending(glob) == ending


def test_globs_are_split_outside_braces():
    assert split_globs("*.{a,b}, !x [c, d].y") == ["*.{a,b}", "!x", "[c, d].y"]


def test_types_and_unknown_types():
    assert FileFilter(file_type="tsx").matches("a.ts")
    assert FileFilter(file_type=".foo").matches("x/a.foo")
    with pytest.raises(ToolError, match="unknown file type"):
        FileFilter(file_type="a b")
