"""The read tool: line ranges, encodings, images, folders and suggestions for missing files."""

import base64

import pytest

from ostler.tools.read import LINE_WIDTH, MAX_CHARACTERS

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.req("FS-4")
async def test_lines_are_numbered(harness):
    harness.file("a.py", "one\ntwo\nthree\n")
    result = await harness.ok("read", path="a.py")
    assert result.for_model == "     1\tone\n     2\ttwo\n     3\tthree"
    assert result.data == {
        "path": "a.py",
        "content": "one\ntwo\nthree",
        "line": 1,
        "lines": 3,
        "encoding": "utf-8",
        "newline": "\n",
        "truncated": False,
    }
    assert result.for_human.summary == "3 of 3 lines"


WINDOWS = {
    "first two": ({"limit": 2}, ["1\tl1", "2\tl2"], "[8 more lines; continue with line=3]"),
    "middle": ({"line": 4, "limit": 2}, ["4\tl4", "5\tl5"], "[5 more lines; continue with line=6]"),
    "end": ({"line": 9, "limit": 50}, ["9\tl9", "10\tl10"], ""),
    "numbers as strings": ({"line": "10"}, ["10\tl10"], "[the call was repaired: line was a string]"),
}


@pytest.mark.req("FS-4")
@pytest.mark.parametrize("case", WINDOWS, ids=str)
async def test_line_ranges(harness, case):
    arguments, lines, ending = WINDOWS[case]
    harness.file("a.txt", "".join(f"l{number}\n" for number in range(1, 11)))
    output = (await harness.ok("read", path="a.txt", **arguments)).for_model.splitlines()
    assert [line.strip() for line in output[: len(lines)]] == lines
    assert output[len(lines) :] == ([ending] if ending else [])


@pytest.mark.req("FS-4")
@pytest.mark.parametrize(
    ("raw", "head"),
    [
        ("naïve café\n".encode("cp1252"), "[cp1252]"),
        ("привет мир, как дела\n".encode("koi8-r"), "[koi8-r]"),
        ("plain\n".encode("utf-16"), "[utf-16-le]"),
        (b"\xef\xbb\xbfmarked\n", "[BOM]"),
        (b"dos\r\nlines\r\n", "[CRLF line endings]"),
        (b"mac\rlines\r", "[CR line endings]"),
        (b"both\r\nkinds\n", "[mixed line endings]"),
        ("übung\n".encode(), None),
    ],
    ids=["cp1252", "koi8-r", "utf-16", "bom", "crlf", "cr", "mixed", "usual"],
)
async def test_unusual_encoding_and_line_endings_are_noted(harness, raw, head):
    harness.file("a.txt", raw)
    first = (await harness.ok("read", path="a.txt")).for_model.splitlines()[0]
    assert first == head if head else first.startswith("     1\t")


async def test_lines_are_counted_as_editors_do(harness):
    harness.file("a.txt", "one\x0cstill one\u2028still\x85still\ntwo\n")
    assert (await harness.ok("read", path="a.txt")).data["lines"] == 2
    harness.file("b.txt", b"a\rb\rc")
    assert (await harness.ok("read", path="b.txt")).data["lines"] == 3


@pytest.mark.req("TL-10", "FS-4")
async def test_truncation_is_noted_with_the_next_line(harness):
    harness.file("wide.txt", "x" * 5000 + "\n")
    output = (await harness.ok("read", path="wide.txt")).for_model
    assert f"… [{5000 - LINE_WIDTH} more]" in output
    harness.file("long.txt", "".join(f"{'y' * 90} {number}\n" for number in range(3000)))
    result = await harness.ok("read", path="long.txt")
    assert len(result.for_model) <= MAX_CHARACTERS + 200
    shown = result.data["content"].count("\n") + 1
    assert result.for_model.endswith(f"[{3000 - shown} more lines; continue with line={shown + 1}]")
    rest = await harness.ok("read", path="long.txt", line=shown + 1)
    assert rest.data["content"].startswith(f"{'y' * 90} {shown}")


async def test_empty_file_and_line_after_the_end(harness):
    harness.file("a.txt")
    assert (await harness.ok("read", path="a.txt")).for_model == "a.txt is empty."
    harness.file("b.txt", "one\n")
    assert (await harness.ok("read", path="b.txt", line=9)).for_model == "b.txt ends with line 1; there is no line 9."


async def test_image_is_returned(harness):
    harness.file("a.png", PNG)
    result = await harness.ok("read", path="a.png")
    (image,) = result.images
    assert (image.mime, base64.b64decode(image.data), image.name) == ("image/png", PNG, "a.png")
    assert result.for_model == f"a.png: image/png, {len(PNG)} bytes"


async def test_folder_is_listed(harness):
    harness.file("src/a.py", "x\n")
    harness.file("src/b/c.py", "x\n")
    result = await harness.ok("read", path="src")
    assert result.for_model == "a.py  2\nb/"


BAD = {
    "a binary file": ("zip.bin", b"PK\x03\x04" + b"\0" * 50, "a ZIP archive"),
    "no such file": ("gone.py", None, "no such file"),
}


@pytest.mark.req("FS-4")
@pytest.mark.parametrize("case", BAD, ids=str)
async def test_unreadable_file_is_reported(harness, case):
    path, content, message = BAD[case]
    if content:
        harness.file(path, content)
    assert message in await harness.fails("read", path=path)


async def test_missing_file_suggests_similar_paths(harness, searcher):
    harness.file("src/parser.py", "x\n")
    harness.file("deep/er/models.py", "x\n")
    assert "did you mean src/parser.py?" in await harness.fails("read", path="src/praser.py")
    assert "did you mean deep/er/models.py?" in await harness.fails("read", path="models.py")
    assert "did you mean" not in await harness.fails("read", path="nothing_like_it.rs")


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("name", ["~notes.txt", "~/a.txt", "~root/a.txt"])
async def test_file_name_with_a_tilde_can_be_read(harness, name):
    harness.file(name, "one\n")
    assert name.split("/")[0] in (await harness.ok("list")).for_model
    assert (await harness.ok("read", path=name)).data["content"] == "one"
    await harness.ok("edit", path=name, edits=[{"old": "one", "new": "two"}])
    assert (harness.root / name).read_text() == "two\n"


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("path", ["../outside/secret.txt", "link", "/etc/passwd", "a\0b", "~/x", ""])
async def test_nothing_outside_is_read(harness, path):
    (harness.root / "link").symlink_to(harness.root.parent / "outside" / "secret.txt")
    output = await harness.fails("read", path=path)
    assert "SECRET" not in output


@pytest.mark.parametrize("arguments", [{"line": 0}, {"limit": -1}, {"line": 1, "limit": 0}], ids=str)
async def test_line_zero_and_unlimited_ranges_are_accepted(harness, arguments):
    harness.file("a.txt", "one\n")
    assert (await harness.ok("read", path="a.txt", **arguments)).data["content"] == "one"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, 'read needs path: send {"path":"src/main.py"}'),
        ({"path": "a", "line": "ten"}, "line must be a whole number"),
        ({"path": {"a": 1}}, "path must be a string, not an object"),
        ({"path": "a", "line": -3}, "line must be at least 1, not -3"),
        ({"path": "a", "encodng": "x"}, "read takes no 'encodng'"),
        ({"path": ["a", "b"]}, "one call for each file"),
    ],
    ids=str,
)
async def test_invalid_arguments_are_rejected_with_advice(harness, arguments, message):
    assert message in await harness.fails("read", **arguments)
