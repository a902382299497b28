"""The grep tool, with ripgrep and with the native search."""

import asyncio
import os
import time

import pytest

from ostler.core.permission import Rule
from ostler.policy.verdict import Policy
from ostler.tools import search_native, search_ripgrep
from ostler.tools.search import LINE_WIDTH

pytestmark = pytest.mark.usefixtures("searcher")


@pytest.fixture
def tree(harness):
    harness.file("src/a.py", "import os\nneedle = 1\nprint(needle)\n")
    harness.file("src/b.ts", "const Needle = 2\n")
    harness.file("src/sub/c.tsx", "let needle\n")
    harness.file("docs/d.md", "a needle in\nthe hay\n")
    harness.file(".hidden/e.txt", "needle\n")
    harness.file(".git/config", "needle\n")
    harness.file("build/f.o", "needle\n")
    harness.file("keep.log", "needle\n")
    harness.file("other.log", "needle\n")
    harness.file("bin.dat", b"needle\0\1\2")
    harness.file(".gitignore", "build/\n*.log\n!keep.log\n")
    (harness.root / "link.txt").symlink_to(harness.root.parent / "outside" / "secret.txt")
    (harness.root / "folder").symlink_to(harness.root.parent / "outside")
    return harness


EVERYWHERE = [
    ".hidden/e.txt:1:needle",
    "docs/d.md:1:a needle in",
    "keep.log:1:needle",
    "src/a.py:2:needle = 1",
    "src/a.py:3:print(needle)",
    "src/sub/c.tsx:1:let needle",
]


@pytest.mark.req("TL-7")
async def test_hidden_files_are_searched_but_not_ignored_binary_or_outside_ones(tree):
    result = await tree.ok("grep", pattern="needle")
    assert result.for_model.splitlines() == EVERYWHERE
    assert result.data["count"] == 6
    assert result.data["matches"][3] == {"path": "src/a.py", "line": 2, "text": "needle = 1"}
    assert result.for_human.summary == "6 hits in 5 files"
    assert "SECRET" not in result.for_model
    single = await tree.ok("grep", pattern="needle = 1")
    assert single.for_human.summary == "1 hit in 1 file"


SOURCES = ["src/a.py:2", "src/a.py:3", "src/b.ts:1", "src/sub/c.tsx:1"]
CASES = {
    "case": ({"pattern": "Needle", "ignore_case": True, "path": "src"}, SOURCES),
    "regex": ({"pattern": r"^n\w+ = \d$"}, ["src/a.py:2"]),
    "word": ({"pattern": r"\bthe\b"}, ["docs/d.md:2"]),
    "word boundary as a JSON escape": ({"pattern": "\bthe\b"}, ["docs/d.md:2"]),
    "one file": ({"pattern": "needle", "path": "docs/d.md"}, ["docs/d.md:1"]),
    "an ignored file when named": ({"pattern": "needle", "path": "other.log"}, ["other.log:1"]),
    "an ignored folder when named": ({"pattern": "needle", "path": "build"}, ["build/f.o:1"]),
    "name": ({"pattern": "needle", "include": "*.py"}, ["src/a.py:2", "src/a.py:3"]),
    "braces": ({"pattern": "(?i)needle", "include": "*.{ts,tsx}"}, ["src/b.ts:1", "src/sub/c.tsx:1"]),
    "two globs": ({"pattern": "needle", "include": "*.md, *.tsx"}, ["docs/d.md:1", "src/sub/c.tsx:1"]),
    "path glob": ({"pattern": "needle", "include": "src/**/*.tsx"}, ["src/sub/c.tsx:1"]),
    "path glob below": ({"pattern": "needle", "include": "sub/*.tsx", "path": "src"}, ["src/sub/c.tsx:1"]),
    "exclusions": ({"pattern": "needle", "include": "!*.py !*.md !.hidden/** !*.log"}, ["src/sub/c.tsx:1"]),
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
    "a trailing newline": ({"pattern": "hay\n"}, ["docs/d.md:2"]),
    "a dash first": ({"pattern": "-e", "literal": True}, []),
}


@pytest.mark.req("TL-7")
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.sampled
async def test_filters(tree, case):
    arguments, places = CASES[case]
    found = [f"{match['path']}:{match['line']}" for match in (await tree.ok("grep", **arguments)).data["matches"]]
    assert found == places


async def test_modes(tree):
    files = await tree.ok("grep", pattern="needle", mode="files")
    assert files.for_model.splitlines() == [".hidden/e.txt", "docs/d.md", "keep.log", "src/a.py", "src/sub/c.tsx"]
    counts = await tree.ok("grep", pattern="needle", mode="count", path="src")
    assert counts.for_model.splitlines() == ["src/a.py:2", "src/sub/c.tsx:1"]
    assert (counts.data["count"], counts.data["files"][0]) == (3, {"path": "src/a.py", "count": 2})


async def test_context(harness):
    harness.file("a.txt", "".join(f"line {number}\n" for number in range(1, 10)))
    output = (await harness.ok("grep", pattern="line [38]", context=1)).for_model
    assert output.splitlines() == [
        "a.txt-2-line 2",
        "a.txt:3:line 3",
        "a.txt-4-line 4",
        "--",
        "a.txt-7-line 7",
        "a.txt:8:line 8",
        "a.txt-9-line 9",
    ]


async def test_no_match_is_not_an_error(tree):
    result = await tree.ok("grep", pattern="no_such_text")
    assert (result.for_model, result.data["count"]) == ("No matches.", 0)


@pytest.mark.parametrize(
    ("arguments", "output"),
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
async def test_no_candidate_files_are_reported(tree, searcher, arguments, output):
    assert (await tree.ok("grep", pattern="no_such_text", **arguments)).for_model == output


@pytest.mark.req("TL-7")
@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"pattern": r"\<foo\>"}, [1, 4, 6]),
        ({"pattern": r"foo\>"}, [1, 3, 4, 6]),
        ({"pattern": r"\\<foo"}, [5, 6]),
        ({"pattern": r"\<foo\>", "literal": True}, [6]),
        ({"pattern": "foo", "path": ""}, [1, 2, 3, 4, 5, 6]),
    ],
    ids=str,
)
async def test_word_boundaries_and_empty_path(harness, searcher, arguments, lines):
    harness.file("a.txt", "foo bar\nfoobar\nbarfoo\n(foo)\n\\<fooo\n\\<foo\\>\n")
    assert [match["line"] for match in (await harness.ok("grep", **arguments)).data["matches"]] == lines


async def test_file_with_only_crs_is_one_line(harness, searcher):
    harness.file("a.txt", b"foo\rbar\r")
    assert (await harness.ok("grep", pattern="bar")).for_model == "a.txt:1:foo\rbar"


@pytest.mark.req("TL-10")
async def test_omitted_matches_are_counted(harness, monkeypatch):
    harness.file("a.txt", "hit\n" * 500)
    output = (await harness.ok("grep", pattern="hit", limit=3)).for_model
    assert output.splitlines() == ["a.txt:1:hit", "a.txt:2:hit", "a.txt:3:hit", "[497 more matches; narrow the search]"]
    harness.file("wide.txt", ("w" * 4000 + " hit\n") * 100)
    result = await harness.ok("grep", pattern="w.*", path="wide.txt", limit=200)
    assert len(result.for_model) < 50_000
    assert f"{'w' * LINE_WIDTH}… [line truncated]" in result.for_model
    assert "more matches; narrow the search" in result.for_model
    for module in (search_native, search_ripgrep):
        monkeypatch.setattr(module, "MAX_LINES", 50)
    assert "stopped after" in (await harness.ok("grep", pattern="hit", path="a.txt")).for_model
    counted = await harness.ok("grep", pattern="hit", mode="count", path="a.txt")
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
async def test_lines_in_any_line_ending_and_encoding(harness, content, pattern, lines):
    harness.file("f.txt", content)
    found = (await harness.ok("grep", pattern=pattern)).data["matches"]
    assert [match["line"] for match in found] == lines


HOSTILE = {
    "nested repeats": (r"(a+)+$", "a" * 40 + "b"),
    "alternatives": (r"(a|a)*$", "a" * 40 + "b"),
    "wide dots": (r"(.*a){12}x", "a" * 3000),
}


@pytest.mark.slow
@pytest.mark.req("TL-7")
@pytest.mark.parametrize("case", HOSTILE, ids=str)
async def test_search_time_is_bounded(harness, case):
    pattern, text = HOSTILE[case]
    harness.file("a.txt", f"{text}\n" * 20)
    started = time.monotonic()
    await harness.ok("grep", pattern=pattern)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("arguments", "message"),
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
async def test_invalid_search_is_rejected_with_advice(tree, arguments, message):
    os.mkfifo(tree.root / "pipe")
    assert message in await tree.fails("grep", **arguments)


async def test_non_utf8_file_names_are_accepted(harness):
    (harness.root / os.fsdecode(b"bad\xff.txt")).write_text("needle\n")
    harness.file("good.txt", "needle\n")
    assert "good.txt:1:needle" in (await harness.ok("grep", pattern="needle")).for_model


async def test_line_break_in_a_file_name(harness, searcher):
    harness.file("odd\nname.txt", "needle\n")
    harness.file("odd\n./name.txt", "needle\n")
    harness.file("good.txt", "needle\n")
    (harness.root / "a.bin").write_bytes(b"needle\n" + b"x" * 100_000 + b"\0")  # ripgrep prints a warning about it
    for mode in ("lines", "files"):
        output = (await harness.ok("grep", pattern="needle", mode=mode)).for_model
        names = [line.split(":")[0] for line in output.splitlines() if not line.startswith("a.bin")]
        assert names == ["good.txt", r"odd\n./name.txt", r"odd\nname.txt"]


async def test_unreadable_file_is_skipped(harness):
    harness.file("good.txt", "needle\n")
    (harness.root / "pipe").unlink(missing_ok=True)
    os.mkfifo(harness.root / "pipe")
    harness.file("closed.txt", "needle\n").chmod(0)
    assert "good.txt:1:needle" in (await harness.ok("grep", pattern="needle")).for_model


async def test_gitignore_above_the_workspace_is_not_applied(harness):
    (harness.root.parent / ".gitignore").write_text("*\n")
    harness.file("a.txt", "needle\n")
    harness.file("sub/b.txt", "needle\n")
    assert (await harness.ok("grep", pattern="needle")).data["count"] == 2
    assert (await harness.ok("grep", pattern="needle", path="sub")).data["count"] == 1


async def test_gitignore_between_root_and_folder_is_applied(harness):
    harness.file("a/.gitignore", "*.tmp\n/only/here.txt\n")
    harness.file("a/b/x.tmp", "needle\n")
    harness.file("a/b/y.txt", "needle\n")
    assert (await harness.ok("grep", pattern="needle", path="a/b")).data["count"] == 1


OTHERS = {
    "cp1252": ("un café noir\ndu thé\n", "café", "un café noir"),
    "cp1251": ("Привет, мир\nпока\n", "привет", "Привет, мир"),
    "cp932": ("日本語のテキスト\nこんにちは世界\n", "こんにちは", "こんにちは世界"),
    "utf-16": ("Größe\nklein\n", r"Gr\x{f6}ße", "Größe"),
}


@pytest.mark.req("TL-7", "FS-4")
@pytest.mark.parametrize("encoding", OTHERS)
async def test_non_ascii_text_is_found_in_any_encoding(harness, encoding):
    text, pattern, line = OTHERS[encoding]
    harness.file("old.txt", text.encode(encoding))
    harness.file("new.txt", text)
    number = text.split("\n").index(line) + 1
    for path in (".", "old.txt"):
        output = [f"new.txt:{number}:{line}"] * (path == ".") + [f"old.txt:{number}:{line}"]
        result = await harness.ok("grep", pattern=pattern, path=path, ignore_case=True)
        assert result.for_model.splitlines() == output
        counted = await harness.ok("grep", pattern=pattern, path=path, ignore_case=True, mode="count")
        assert counted.data["count"] == len(output)
    assert "No matches" in (await harness.ok("grep", pattern=pattern, include="*.py")).for_model


@pytest.mark.req("TL-7", "FS-4")
async def test_lines_of_legacy_encodings_are_decoded(harness):
    harness.file("old.txt", "un café noir\ndu thé noir\n".encode("cp1252"))
    result = await harness.ok("grep", pattern="un ", context=1)
    assert result.for_model.splitlines() == ["old.txt:1:un café noir", "old.txt-2-du thé noir"]


@pytest.mark.req("TL-7")
async def test_file_with_a_zero_byte_is_binary(harness):
    harness.file("late.txt", b"needle\n" + b"hay\n" * 50_000 + b"\0\nneedle\n")
    harness.file("text.txt", "a needle\n")
    assert (await harness.ok("grep", pattern="needle")).for_model == "text.txt:1:a needle"
    assert (await harness.ok("grep", pattern="needle", mode="count")).for_model == "text.txt:1"
    for mode in ("lines", "count", "files"):
        assert (await harness.ok("grep", pattern="needle", path="late.txt", mode=mode)).for_model == "No matches."


@pytest.mark.req("TL-7")
async def test_file_name_cannot_hide_another_file(harness):
    warning = 'a.txt: WARNING: stopped searching binary file after match (found "\\0" byte around offset 1)'
    harness.file("a.txt", "needle\n")
    harness.file(f"b\n{warning}\nc.txt", "needle\n")
    assert (await harness.ok("grep", pattern="needle")).data["count"] == 2


async def test_cancelled_search_ends(harness, searcher, monkeypatch):
    harness.file("a.txt", "needle\n" * 40_000)
    for number in range(50):
        harness.file(f"b{number}.txt", "needle\n" * 100)
    started = asyncio.Event()
    loop = asyncio.get_running_loop()
    module, name = (search_native, "read_text_bytes") if searcher == "native" else (search_ripgrep, "_group_by_file")
    original = getattr(module, name)

    def wrapper(*arguments):
        loop.call_soon_threadsafe(started.set)
        return original(*arguments)

    monkeypatch.setattr(module, name, wrapper)
    for module in (search_native, search_ripgrep):
        monkeypatch.setattr(module, "MAX_LINES", 1_000_000)
    task = asyncio.ensure_future(harness.call("grep", {"pattern": "needle"}))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await harness.ok("grep", pattern="needle", mode="count", path="b1.txt")).data["count"] == 100


@pytest.mark.req("PM-8")
async def test_ripgrep_in_the_workspace_is_not_run(harness, monkeypatch, tmp_path):
    from ostler.tools import search

    harness.file("bin/rg", f"#!/bin/sh\ntouch {tmp_path}/mark\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{harness.root}/bin")
    monkeypatch.setattr(search.sys, "executable", "/nonexistent/python")
    await harness.ok("grep", pattern="x")
    assert not (tmp_path / "mark").exists()


@pytest.mark.req("PM-1")
@pytest.mark.parametrize("mode", ["lines", "files", "count"])
@pytest.mark.parametrize("action", ["deny", "ask"])
async def test_files_that_a_read_rule_does_not_allow_are_skipped(make_harness, mode, action):
    rules = (Rule("*", "*", "allow"), Rule("read", "*.env", action, "user"))
    tools = make_harness(policy=Policy(rules=rules))
    tools.file(".env", "needle secret\n")
    tools.file("a.txt", "a needle\n")
    result = await tools.ok("grep", pattern="needle", mode=mode)
    assert "a.txt" in result.for_model
    assert ".env" not in result.for_model
    assert "secret" not in result.for_model
    assert "secret" not in str(result.data)
    assert "[1 file not searched, which a permission rule for read does not allow]" in result.for_model
    result = await tools.ok("grep", pattern="needle", path=".env", mode=mode)
    assert "secret" not in result.for_model


@pytest.mark.req("PM-1")
@pytest.mark.parametrize("path", [".", "sub", "sub/.env"])
async def test_the_answer_does_not_show_whether_a_hidden_file_matches(make_harness, path):
    rules = (Rule("*", "*", "allow"), Rule("read", "*.env", "deny", "user"))
    tools = make_harness(policy=Policy(rules=rules))
    tools.file("sub/.env", "KEY=abc\n")
    for mode in ("lines", "files", "count"):
        right = await tools.ok("grep", pattern="KEY=a", path=path, mode=mode)
        wrong = await tools.ok("grep", pattern="KEY=b", path=path, mode=mode)
        assert right.for_model == wrong.for_model
        assert right.data | {"pattern": ""} == wrong.data | {"pattern": ""}
