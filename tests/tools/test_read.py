"""The read tool: windows, encodings, pictures, folders, and names that were meant."""

import base64

import pytest

from ostler.tools.read import LINE_WIDTH, MAX_CHARACTERS

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.req("FS-4")
async def test_lines_come_numbered_and_whole(room):
    room.file("a.py", "one\ntwo\nthree\n")
    result = await room.ok("read", path="a.py")
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
    "first two": ({"limit": 2}, ["1\tl1", "2\tl2"], "[8 more lines; read on with line=3]"),
    "middle": ({"line": 4, "limit": 2}, ["4\tl4", "5\tl5"], "[5 more lines; read on with line=6]"),
    "end": ({"line": 9, "limit": 50}, ["9\tl9", "10\tl10"], ""),
    "numbers as texts": ({"line": "10"}, ["10\tl10"], "[the call was mended: line was a text]"),
}


@pytest.mark.req("FS-4")
@pytest.mark.parametrize("case", WINDOWS, ids=str)
async def test_windows(room, case):
    given, lines, ending = WINDOWS[case]
    room.file("a.txt", "".join(f"l{number}\n" for number in range(1, 11)))
    told = (await room.ok("read", path="a.txt", **given)).for_model.splitlines()
    assert [line.strip() for line in told[: len(lines)]] == lines
    assert told[len(lines) :] == ([ending] if ending else [])


@pytest.mark.req("FS-4")
@pytest.mark.parametrize(
    ("raw", "head"),
    [
        ("naïve café\n".encode("cp1252"), "[cp1252]"),
        ("привет мир, как дела\n".encode("koi8-r"), "[koi8-r]"),
        ("plain\n".encode("utf-16"), "[utf-16-le]"),
        (b"\xef\xbb\xbfmarked\n", "[BOM]"),
        (b"dos\r\nlines\r\n", "[CRLF line ends]"),
        (b"mac\rlines\r", "[CR line ends]"),
        (b"both\r\nkinds\n", "[mixed line ends]"),
        ("übung\n".encode(), None),
    ],
    ids=["cp1252", "koi8-r", "utf-16", "bom", "crlf", "cr", "mixed", "usual"],
)
async def test_how_a_text_is_stored_is_told_when_it_is_not_the_usual(room, raw, head):
    room.file("a.txt", raw)
    first = (await room.ok("read", path="a.txt")).for_model.splitlines()[0]
    assert first == head if head else first.startswith("     1\t")


async def test_lines_are_counted_as_editors_do(room):
    room.file("a.txt", "one\x0cstill one\u2028still\x85still\ntwo\n")
    assert (await room.ok("read", path="a.txt")).data["lines"] == 2
    room.file("b.txt", b"a\rb\rc")
    assert (await room.ok("read", path="b.txt")).data["lines"] == 3


@pytest.mark.req("TL-10", "FS-4")
async def test_what_is_cut_says_so_and_where_it_goes_on(room):
    room.file("wide.txt", "x" * 5000 + "\n")
    told = (await room.ok("read", path="wide.txt")).for_model
    assert f"… [{5000 - LINE_WIDTH} more]" in told
    room.file("long.txt", "".join(f"{'y' * 90} {number}\n" for number in range(3000)))
    result = await room.ok("read", path="long.txt")
    assert len(result.for_model) <= MAX_CHARACTERS + 200
    shown = result.data["content"].count("\n") + 1
    assert result.for_model.endswith(f"[{3000 - shown} more lines; read on with line={shown + 1}]")
    rest = await room.ok("read", path="long.txt", line=shown + 1)
    assert rest.data["content"].startswith(f"{'y' * 90} {shown}")


async def test_an_empty_file_and_a_line_that_is_not_there(room):
    room.file("a.txt")
    assert (await room.ok("read", path="a.txt")).for_model == "a.txt is empty."
    room.file("b.txt", "one\n")
    assert (await room.ok("read", path="b.txt", line=9)).for_model == "b.txt ends with line 1; there is no line 9."


async def test_an_image_is_shown_as_one(room):
    room.file("a.png", PNG)
    result = await room.ok("read", path="a.png")
    (image,) = result.images
    assert (image.mime, base64.b64decode(image.data), image.name) == ("image/png", PNG, "a.png")
    assert result.for_model == f"a.png: image/png, {len(PNG)} bytes"


async def test_a_folder_is_listed(room):
    room.file("src/a.py", "x\n")
    room.file("src/b/c.py", "x\n")
    result = await room.ok("read", path="src")
    assert result.for_model == "a.py  2\nb/"


BAD = {
    "a binary says what it is": ("zip.bin", b"PK\x03\x04" + b"\0" * 50, "a ZIP archive"),
    "no such file": ("gone.py", None, "no such file"),
}


@pytest.mark.req("FS-4")
@pytest.mark.parametrize("case", BAD, ids=str)
async def test_what_cannot_be_read_is_told(room, case):
    path, content, sentence = BAD[case]
    if content:
        room.file(path, content)
    assert sentence in await room.fails("read", path=path)


async def test_a_missing_file_brings_the_names_that_may_have_been_meant(room, searcher):
    room.file("src/parser.py", "x\n")
    room.file("deep/er/models.py", "x\n")
    assert "did you mean src/parser.py?" in await room.fails("read", path="src/praser.py")
    assert "did you mean deep/er/models.py?" in await room.fails("read", path="models.py")
    assert "did you mean" not in await room.fails("read", path="nothing_like_it.rs")


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("name", ["~notes.txt", "~/a.txt", "~root/a.txt"])
async def test_a_name_with_a_tilde_is_read_as_it_is_listed(room, name):
    room.file(name, "one\n")
    assert name.split("/")[0] in (await room.ok("list")).for_model
    assert (await room.ok("read", path=name)).data["content"] == "one"
    await room.ok("edit", path=name, edits=[{"old": "one", "new": "two"}])
    assert (room.root / name).read_text() == "two\n"


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("path", ["../outside/secret.txt", "link", "/etc/passwd", "a\0b", "~/x", ""])
async def test_nothing_outside_is_read(room, path):
    (room.root / "link").symlink_to(room.root.parent / "outside" / "secret.txt")
    told = await room.fails("read", path=path)
    assert "SECRET" not in told


@pytest.mark.parametrize("given", [{"line": 0}, {"limit": -1}, {"line": 1, "limit": 0}], ids=str)
async def test_windows_that_count_from_zero_or_want_everything_are_understood(room, given):
    room.file("a.txt", "one\n")
    assert (await room.ok("read", path="a.txt", **given)).data["content"] == "one"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, 'read needs path: send {"path":"src/main.py"}'),
        ({"path": "a", "line": "ten"}, "line must be a whole number"),
        ({"path": {"a": 1}}, "path must be a text, and it is an object"),
        ({"path": "a", "line": -3}, "line must be at least 1, and it is -3"),
        ({"path": "a", "encodng": "x"}, "read takes no 'encodng'"),
        ({"path": ["a", "b"]}, "one call for each file"),
    ],
    ids=str,
)
async def test_bad_arguments_are_answered_with_what_to_send(room, given, sentence):
    assert sentence in await room.fails("read", **given)
