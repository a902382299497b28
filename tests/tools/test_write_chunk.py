"""Large files in pieces: whole at the end, or each piece on disk at once under the other name."""

import pytest

from ostler.core.permission import Rule
from ostler.policy.verdict import Policy
from ostler.tools import write_chunk


@pytest.mark.req("TL-2")
async def test_the_file_appears_whole_with_the_final_piece(room):
    for piece in ("one\n", "two\n"):
        told = await room.ok("write_chunk", path="big.txt", content=piece)
        assert not (room.root / "big.txt").exists()
    assert told.for_model == "received piece 2 of big.txt (8 characters so far); set final on the last"
    done = await room.ok("write_chunk", path="big.txt", content="three\n", final=True)
    assert (room.root / "big.txt").read_text() == "one\ntwo\nthree\n"
    assert done.data["operation"] == "created"
    assert done.for_model == "created big.txt (+3 -0)\n3 pieces"
    again = await room.ok("write_chunk", path="big.txt", content="x\n", final=True)
    assert (room.root / "big.txt").read_text() == "x\n"
    assert again.data["operation"] == "updated"


async def test_restart_drops_what_waits(room):
    await room.ok("write_chunk", path="a.txt", content="wrong")
    await room.ok("write_chunk", path="./a.txt", content="right", restart=True, final=True)
    assert (room.root / "a.txt").read_text() == "right"


@pytest.mark.req("FS-6")
async def test_a_file_that_was_not_read_is_not_replaced_and_the_pieces_stay(room):
    room.file("a.txt", "precious\n")
    assert "has not been read" in await room.fails("write_chunk", path="a.txt", content="x", final=True)
    await room.ok("read", path="a.txt")
    await room.ok("write_chunk", path="a.txt", content="x", final=True)
    assert (room.root / "a.txt").read_text() == "x"


@pytest.mark.req("TL-2", "TL-4")
@pytest.mark.parametrize("name", ["write_file_chunk", "write_file_stream", "SysBuiltIn.write_file_chunk"])
async def test_under_the_other_name_each_piece_is_on_disk_when_its_call_returns(room, name):
    await room.ok(name, filename="deep/a.txt", content="one", truncate=True, ensure_newline=True)
    assert (room.root / "deep/a.txt").read_text() == "one\n"
    told = await room.ok(name, filename="deep/a.txt", content="two")
    assert (room.root / "deep/a.txt").read_text() == "one\ntwo"
    assert told.for_model == "appended 3 characters to deep/a.txt (7 bytes now)"
    await room.ok(name, filename="deep/a.txt", content="three\n", truncate="true")
    assert (room.root / "deep/a.txt").read_text() == "three\n"


async def test_pieces_are_appended_in_the_form_the_file_has(room):
    room.file("a.txt", "één\r\ntwee\r\n".encode("cp1252"))
    await room.ok("write_file_chunk", path="a.txt", content="drieë\n")
    assert (room.root / "a.txt").read_bytes() == "één\r\ntwee\r\ndrieë\r\n".encode("cp1252")
    assert "cannot represent this text" in await room.fails("write_file_chunk", path="a.txt", content="日本")


async def test_bounds(room, monkeypatch):
    monkeypatch.setattr(write_chunk, "MAX_CHARACTERS", 10)
    monkeypatch.setattr(write_chunk, "MAX_FILES", 2)
    assert "split it into several files" in await room.fails("write_chunk", path="a", content="x" * 11)
    await room.ok("write_chunk", path="a", content="x")
    await room.ok("write_chunk", path="b", content="x")
    assert "files are unfinished" in await room.fails("write_chunk", path="c", content="x")


@pytest.mark.req("FS-2", "PM-1")
async def test_whoever_forbids_writing_forbids_pieces(rooms):
    rules = (Rule("*", "*", "allow"), Rule("edit", "*", "deny", "test"))
    room = rooms(policy=Policy(rules=rules))
    for name in ("write_chunk", "write_file_chunk"):
        assert (await room.call(name, {"path": "a", "content": "x", "final": True})).status == "denied"
    assert list(room.root.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"path": "a"}, "write_chunk needs content"),
        ({"path": "a", "content": ["x", "y"]}, "content must be a string"),
        ({"path": "", "content": "x"}, "the path is empty"),
        ({"path": "a", "content": "x", "mode": "prepend"}, "it can be append, gather, overwrite"),
    ],
    ids=str,
)
async def test_bad_pieces(room, given, sentence):
    assert sentence in await room.fails("write_chunk", **given)
