"""The grep tool, by ripgrep and by ourselves: the same answers, whatever the pattern or the tree."""

import asyncio
import os
import time

import pytest

from ostler.tools import search_native, search_ripgrep
from ostler.tools.search import LINE_WIDTH

pytestmark = pytest.mark.usefixtures("searcher")


@pytest.fixture
def tree(room):
    room.file("src/a.py", "import os\nneedle = 1\nprint(needle)\n")
    room.file("src/b.ts", "const Needle = 2\n")
    room.file("src/sub/c.tsx", "let needle\n")
    room.file("docs/d.md", "a needle in\nthe hay\n")
    room.file(".hidden/e.txt", "needle\n")
    room.file(".git/config", "needle\n")
    room.file("build/f.o", "needle\n")
    room.file("keep.log", "needle\n")
    room.file("other.log", "needle\n")
    room.file("bin.dat", b"needle\0\1\2")
    room.file(".gitignore", "build/\n*.log\n!keep.log\n")
    (room.root / "link.txt").symlink_to(room.root.parent / "outside" / "secret.txt")
    (room.root / "folder").symlink_to(room.root.parent / "outside")
    return room


EVERYWHERE = [
    ".hidden/e.txt:1:needle",
    "docs/d.md:1:a needle in",
    "keep.log:1:needle",
    "src/a.py:2:needle = 1",
    "src/a.py:3:print(needle)",
    "src/sub/c.tsx:1:let needle",
]


@pytest.mark.req("TL-7")
async def test_hidden_files_are_searched_and_ignored_binary_and_foreign_ones_are_not(tree):
    result = await tree.ok("grep", pattern="needle")
    assert result.for_model.splitlines() == EVERYWHERE
    assert result.data["count"] == 6
    assert result.data["matches"][3] == {"path": "src/a.py", "line": 2, "text": "needle = 1"}
    assert result.for_human.summary == "6 matches in 5 files"
    assert "SECRET" not in result.for_model
    one = await tree.ok("grep", pattern="needle = 1")
    assert one.for_human.summary == "1 match in 1 file"


SOURCES = ["src/a.py:2", "src/a.py:3", "src/b.ts:1", "src/sub/c.tsx:1"]
CASES = {
    "case": ({"pattern": "Needle", "ignore_case": True, "path": "src"}, SOURCES),
    "regex": ({"pattern": r"^n\w+ = \d$"}, ["src/a.py:2"]),
    "word": ({"pattern": r"\bthe\b"}, ["docs/d.md:2"]),
    "word as JSON swallowed it": ({"pattern": "\bthe\b"}, ["docs/d.md:2"]),
    "one file": ({"pattern": "needle", "path": "docs/d.md"}, ["docs/d.md:1"]),
    "an ignored file when named": ({"pattern": "needle", "path": "other.log"}, ["other.log:1"]),
    "an ignored folder when named": ({"pattern": "needle", "path": "build"}, ["build/f.o:1"]),
    "name": ({"pattern": "needle", "include": "*.py"}, ["src/a.py:2", "src/a.py:3"]),
    "braces": ({"pattern": "(?i)needle", "include": "*.{ts,tsx}"}, ["src/b.ts:1", "src/sub/c.tsx:1"]),
    "two globs": ({"pattern": "needle", "include": "*.md, *.tsx"}, ["docs/d.md:1", "src/sub/c.tsx:1"]),
    "path glob": ({"pattern": "needle", "include": "src/**/*.tsx"}, ["src/sub/c.tsx:1"]),
    "path glob below": ({"pattern": "needle", "include": "sub/*.tsx", "path": "src"}, ["src/sub/c.tsx:1"]),
    "not these": ({"pattern": "needle", "include": "!*.py !*.md !.hidden/** !*.log"}, ["src/sub/c.tsx:1"]),
    "an ignored glob stays ignored": ({"pattern": "needle", "include": "*.log"}, ["keep.log:1"]),
    "a folder": ({"pattern": "needle", "include": "src/"}, ["src/a.py:2", "src/a.py:3", "src/sub/c.tsx:1"]),
    "a brace with a slash": (
        {"pattern": "needle", "include": "{src/a,docs/d}.*"},
        ["docs/d.md:1", "src/a.py:2", "src/a.py:3"],
    ),
    "stars within a name": ({"pattern": "needle", "include": "s**tsx"}, ["src/sub/c.tsx:1"]),
    "type": ({"pattern": "needle", "type": "python"}, ["src/a.py:2", "src/a.py:3"]),
    "type and glob": ({"pattern": "needle", "type": "ts", "include": "src/sub/**"}, ["src/sub/c.tsx:1"]),
    "plain text": ({"pattern": "print(needle)", "literal": True}, ["src/a.py:3"]),
    "a trailing line end": ({"pattern": "hay\n"}, ["docs/d.md:2"]),
    "a dash first": ({"pattern": "-e", "literal": True}, []),
}


@pytest.mark.req("TL-7")
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_filters(tree, case):
    given, places = CASES[case]
    found = [f"{match['path']}:{match['line']}" for match in (await tree.ok("grep", **given)).data["matches"]]
    assert found == places


async def test_modes(tree):
    files = await tree.ok("grep", pattern="needle", mode="files")
    assert files.for_model.splitlines() == [".hidden/e.txt", "docs/d.md", "keep.log", "src/a.py", "src/sub/c.tsx"]
    counts = await tree.ok("grep", pattern="needle", mode="count", path="src")
    assert counts.for_model.splitlines() == ["src/a.py:2", "src/sub/c.tsx:1"]
    assert (counts.data["count"], counts.data["files"][0]) == (3, {"path": "src/a.py", "count": 2})


async def test_context(room):
    room.file("a.txt", "".join(f"line {number}\n" for number in range(1, 10)))
    told = (await room.ok("grep", pattern="line [38]", context=1)).for_model
    assert told.splitlines() == [
        "a.txt-2-line 2",
        "a.txt:3:line 3",
        "a.txt-4-line 4",
        "--",
        "a.txt-7-line 7",
        "a.txt:8:line 8",
        "a.txt-9-line 9",
    ]


async def test_nothing_found_is_no_failure(tree):
    result = await tree.ok("grep", pattern="unheard_of")
    assert (result.for_model, result.data["count"]) == ("No matches.", 0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"include": "[["}, "No matches: no file matches include '[['."),
        ({"include": "/etc/*"}, "No matches: no file matches include '/etc/*'."),
        ({"type": "nosuch", "include": "*.py"}, "No matches: no file matches include '*.py' and type 'nosuch'."),
        ({"include": "*.md", "path": "src"}, "No matches: no file matches include '*.md'."),
        ({"include": "*.py"}, "No matches."),
        ({"include": "*.py", "mode": "files"}, "No matches."),
    ],
    ids=str,
)
async def test_nothing_found_where_nothing_was_searched_says_so(tree, searcher, given, told):
    assert (await tree.ok("grep", pattern="unheard_of", **given)).for_model == told


@pytest.mark.req("TL-7")
@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"pattern": r"\<foo\>"}, [1, 4, 6]),
        ({"pattern": r"foo\>"}, [1, 3, 4, 6]),
        ({"pattern": r"\\<foo"}, [5, 6]),
        ({"pattern": r"\<foo\>", "literal": True}, [6]),
        ({"pattern": "foo", "path": ""}, [1, 2, 3, 4, 5, 6]),
    ],
    ids=str,
)
async def test_borders_of_words_and_no_path(room, searcher, given, lines):
    room.file("a.txt", "foo bar\nfoobar\nbarfoo\n(foo)\n\\<fooo\n\\<foo\\>\n")
    assert [match["line"] for match in (await room.ok("grep", **given)).data["matches"]] == lines


async def test_a_file_of_carriage_returns_is_one_line_for_both(room, searcher):
    room.file("a.txt", b"foo\rbar\r")
    assert (await room.ok("grep", pattern="bar")).for_model == "a.txt:1:foo\rbar"


@pytest.mark.req("TL-10")
async def test_what_is_too_much_is_counted(room, monkeypatch):
    room.file("a.txt", "hit\n" * 500)
    told = (await room.ok("grep", pattern="hit", limit=3)).for_model
    assert told.splitlines() == ["a.txt:1:hit", "a.txt:2:hit", "a.txt:3:hit", "[497 more matches; narrow the search]"]
    room.file("wide.txt", ("w" * 4000 + " hit\n") * 100)
    result = await room.ok("grep", pattern="w.*", path="wide.txt", limit=200)
    assert len(result.for_model) < 50_000
    assert f"{'w' * LINE_WIDTH}… [line truncated]" in result.for_model
    assert "more matches; narrow the search" in result.for_model
    for module in (search_native, search_ripgrep):
        monkeypatch.setattr(module, "MAX_LINES", 50)
    assert "stopped after" in (await room.ok("grep", pattern="hit", path="a.txt")).for_model
    counted = await room.ok("grep", pattern="hit", mode="count", path="a.txt")
    assert counted.for_model == "a.txt:500"


@pytest.mark.parametrize(
    ("content", "pattern", "lines"),
    [
        (b"one\r\ntwo\r\n", "one$", [1]),
        (b"one\r\ntwo\r\n", "^two$", [2]),
        (b"no end", "no end$", [1]),
        (b"a\n\nb\n", "^$", [2]),
        (b"\n", "^$", [1]),
        ("grün\n".encode(), "gr.n", [1]),
        ("grün\n".encode(), "GRÜN", []),
        (b"caf\xe9 here\n", "here", [1]),
        ("wide needle\n".encode("utf-16"), "needle", [1]),
        (b"\xef\xbb\xbffirst\n", "^first", [1]),
        (b"a b\nc d\n", r"b\s+c", []),
        (b"x\n" * 100 + b"y\n", "y", [101]),
        (b"", "x", []),
    ],
    ids=str,
)
async def test_lines_are_what_they_are_in_any_file(room, content, pattern, lines):
    room.file("f.txt", content)
    found = (await room.ok("grep", pattern=pattern)).data["matches"]
    assert [match["line"] for match in found] == lines


HOSTILE = {
    "nested repeats": (r"(a+)+$", "a" * 40 + "b"),
    "alternatives": (r"(a|a)*$", "a" * 40 + "b"),
    "wide dots": (r"(.*a){12}x", "a" * 3000),
}


@pytest.mark.slow
@pytest.mark.req("TL-7")
@pytest.mark.parametrize("case", HOSTILE, ids=str)
async def test_no_pattern_takes_long(room, case):
    pattern, text = HOSTILE[case]
    room.file("a.txt", f"{text}\n" * 20)
    began = time.monotonic()
    await room.ok("grep", pattern=pattern)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"pattern": "foo("}, "the pattern cannot be used"),
        ({"pattern": "(?=x)y"}, "look-around and back-references are not supported"),
        ({"pattern": r"(a)\1"}, "look-around and back-references are not supported"),
        ({"pattern": "((x{1000}){1000}){100}"}, "the pattern cannot be used"),
        ({"pattern": ""}, "the pattern is empty"),
        ({"pattern": "a\nb"}, "one line at a time"),
        ({"pattern": r"a\nb"}, "one line at a time"),
        ({"pattern": "x", "path": "src/*.py"}, "give a folder as path, and a glob as include"),
        ({"pattern": "x", "path": "gone"}, "no such file or directory"),
        ({"pattern": "x", "path": "../outside"}, "outside the workspace"),
        ({"pattern": "x", "path": "folder"}, "outside the workspace"),
        ({"pattern": "x", "path": "pipe"}, "which is never searched"),
        ({"pattern": "x", "include": "../**"}, "contains .."),
        ({"pattern": "x", "type": "!!"}, "unknown file type"),
        ({"pattern": "x", "mode": "tree"}, "mode is 'tree'; it can be count, files, lines"),
        ({"pattern": "x", "contxt": 3}, "did you mean context?"),
        ({}, "grep needs pattern"),
    ],
    ids=str,
)
async def test_bad_searches_are_answered_with_what_to_do(tree, given, sentence):
    os.mkfifo(tree.root / "pipe")
    assert sentence in await tree.fails("grep", **given)


async def test_names_that_are_no_text_do_no_harm(room):
    (room.root / os.fsdecode(b"bad\xff.txt")).write_text("needle\n")
    room.file("good.txt", "needle\n")
    assert "good.txt:1:needle" in (await room.ok("grep", pattern="needle")).for_model


async def test_a_line_end_in_a_name_makes_no_other_name_of_it(room, searcher):
    room.file("odd\nname.txt", "needle\n")
    room.file("odd\n./name.txt", "needle\n")
    room.file("good.txt", "needle\n")
    (room.root / "a.bin").write_bytes(b"needle\n" + b"x" * 100_000 + b"\0")  # ripgrep says a word on it
    for mode in ("lines", "files"):
        told = (await room.ok("grep", pattern="needle", mode=mode)).for_model
        names = [line.split(":")[0] for line in told.splitlines() if not line.startswith("a.bin")]
        assert names == ["good.txt", r"odd\n./name.txt", r"odd\nname.txt"]


async def test_a_file_that_cannot_be_read_does_not_spoil_the_rest(room):
    room.file("good.txt", "needle\n")
    (room.root / "pipe").unlink(missing_ok=True)
    os.mkfifo(room.root / "pipe")
    room.file("closed.txt", "needle\n").chmod(0)
    assert "good.txt:1:needle" in (await room.ok("grep", pattern="needle")).for_model


async def test_an_ignore_file_above_the_workspace_does_not_count(room):
    (room.root.parent / ".gitignore").write_text("*\n")
    room.file("a.txt", "needle\n")
    room.file("sub/b.txt", "needle\n")
    assert (await room.ok("grep", pattern="needle")).data["count"] == 2
    assert (await room.ok("grep", pattern="needle", path="sub")).data["count"] == 1


async def test_an_ignore_file_between_the_root_and_the_folder_counts(room):
    room.file("a/.gitignore", "*.tmp\n/only/here.txt\n")
    room.file("a/b/x.tmp", "needle\n")
    room.file("a/b/y.txt", "needle\n")
    assert (await room.ok("grep", pattern="needle", path="a/b")).data["count"] == 1


OTHERS = {
    "cp1252": ("un café noir\ndu thé\n", "café", "un café noir"),
    "cp1251": ("Привет, мир\nпока\n", "привет", "Привет, мир"),
    "cp932": ("日本語のテキスト\nこんにちは世界\n", "こんにちは", "こんにちは世界"),
    "utf-16": ("Größe\nklein\n", r"Gr\x{f6}ße", "Größe"),
}


@pytest.mark.req("TL-7", "FS-4")
@pytest.mark.parametrize("encoding", OTHERS)
async def test_letters_are_found_in_any_encoding(room, encoding):
    text, pattern, line = OTHERS[encoding]
    room.file("old.txt", text.encode(encoding))
    room.file("new.txt", text)
    number = text.split("\n").index(line) + 1
    for path in (".", "old.txt"):
        told = [f"new.txt:{number}:{line}"] * (path == ".") + [f"old.txt:{number}:{line}"]
        result = await room.ok("grep", pattern=pattern, path=path, ignore_case=True)
        assert result.for_model.splitlines() == told
        counted = await room.ok("grep", pattern=pattern, path=path, ignore_case=True, mode="count")
        assert counted.data["count"] == len(told)
    assert "No matches" in (await room.ok("grep", pattern=pattern, include="*.py")).for_model


@pytest.mark.req("TL-7", "FS-4")
async def test_lines_of_another_encoding_are_told_as_read_tells_them(room):
    room.file("old.txt", "un café noir\ndu thé noir\n".encode("cp1252"))
    result = await room.ok("grep", pattern="un ", context=1)
    assert result.for_model.splitlines() == ["old.txt:1:un café noir", "old.txt-2-du thé noir"]


@pytest.mark.req("TL-7")
async def test_a_zero_byte_anywhere_makes_a_file_binary(room):
    room.file("late.txt", b"needle\n" + b"hay\n" * 50_000 + b"\0\nneedle\n")
    room.file("text.txt", "a needle\n")
    assert (await room.ok("grep", pattern="needle")).for_model == "text.txt:1:a needle"
    assert (await room.ok("grep", pattern="needle", mode="count")).for_model == "text.txt:1"
    for mode in ("lines", "count", "files"):
        assert (await room.ok("grep", pattern="needle", path="late.txt", mode=mode)).for_model == "No matches."


@pytest.mark.req("TL-7")
async def test_a_name_hides_no_other_file(room):
    remark = 'a.txt: WARNING: stopped searching binary file after match (found "\\0" byte around offset 1)'
    room.file("a.txt", "needle\n")
    room.file(f"b\n{remark}\nc.txt", "needle\n")
    assert (await room.ok("grep", pattern="needle")).data["count"] == 2


async def test_a_search_that_is_cancelled_ends(room, searcher, monkeypatch):
    room.file("a.txt", "needle\n" * 40_000)
    for number in range(50):
        room.file(f"b{number}.txt", "needle\n" * 100)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    module, name = (search_native, "read_text_bytes") if searcher == "native" else (search_ripgrep, "_group_by_file")
    watched = getattr(module, name)

    def watching(*given):
        loop.call_soon_threadsafe(begun.set)
        return watched(*given)

    monkeypatch.setattr(module, name, watching)
    for module in (search_native, search_ripgrep):
        monkeypatch.setattr(module, "MAX_LINES", 1_000_000)
    task = asyncio.ensure_future(room.call("grep", {"pattern": "needle"}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await room.ok("grep", pattern="needle", mode="count", path="b1.txt")).data["count"] == 100


@pytest.mark.req("PM-8")
async def test_a_ripgrep_of_the_workspace_is_not_run(room, monkeypatch, tmp_path):
    from ostler.tools import search

    room.file("bin/rg", f"#!/bin/sh\ntouch {tmp_path}/mark\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{room.root}/bin")
    monkeypatch.setattr(search.sys, "executable", "/nonexistent/python")
    await room.ok("grep", pattern="x")
    assert not (tmp_path / "mark").exists()
