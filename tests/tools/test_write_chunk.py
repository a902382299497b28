"""The write_chunk tool: pieces are collected, or written immediately under other tools' names."""

import pytest

from ostler.core.permission import Rule
from ostler.policy.verdict import Policy
from ostler.tools import write_chunk


@pytest.mark.req("TL-2")
async def test_file_is_created_with_the_final_piece(harness):
    for piece in ("one\n", "two\n"):
        output = await harness.ok("write_chunk", path="big.txt", content=piece)
        assert not (harness.root / "big.txt").exists()
    assert output.for_model == "received piece 2 of big.txt (8 characters so far); set final on the last"
    done = await harness.ok("write_chunk", path="big.txt", content="three\n", final=True)
    assert (harness.root / "big.txt").read_text() == "one\ntwo\nthree\n"
    assert done.data["operation"] == "created"
    assert done.for_model == "created big.txt (+3 -0)\n3 pieces"
    again = await harness.ok("write_chunk", path="big.txt", content="x\n", final=True)
    assert (harness.root / "big.txt").read_text() == "x\n"
    assert again.data["operation"] == "updated"


async def test_restart_drops_pending_pieces(harness):
    await harness.ok("write_chunk", path="a.txt", content="wrong")
    await harness.ok("write_chunk", path="./a.txt", content="right", restart=True, final=True)
    assert (harness.root / "a.txt").read_text() == "right"


@pytest.mark.req("FS-6")
async def test_unread_file_is_not_replaced_and_pieces_are_kept(harness):
    harness.file("a.txt", "precious\n")
    assert "has not been read" in await harness.fails("write_chunk", path="a.txt", content="x", final=True)
    await harness.ok("read", path="a.txt")
    await harness.ok("write_chunk", path="a.txt", content="x", final=True)
    assert (harness.root / "a.txt").read_text() == "x"


@pytest.mark.req("TL-2", "TL-4")
@pytest.mark.parametrize("name", ["write_file_chunk", "write_file_stream", "SysBuiltIn.write_file_chunk"])
async def test_alias_writes_each_piece_to_disk(harness, name):
    await harness.ok(name, filename="deep/a.txt", content="one", truncate=True, ensure_newline=True)
    assert (harness.root / "deep/a.txt").read_text() == "one\n"
    output = await harness.ok(name, filename="deep/a.txt", content="two")
    assert (harness.root / "deep/a.txt").read_text() == "one\ntwo"
    assert output.for_model == "appended 3 characters to deep/a.txt (7 bytes now)"
    await harness.ok(name, filename="deep/a.txt", content="three\n", truncate="true")
    assert (harness.root / "deep/a.txt").read_text() == "three\n"


async def test_pieces_are_appended_in_the_encoding_of_the_file(harness):
    harness.file("a.txt", "één\r\ntwee\r\n".encode("cp1252"))
    await harness.ok("write_file_chunk", path="a.txt", content="drieë\n")
    assert (harness.root / "a.txt").read_bytes() == "één\r\ntwee\r\ndrieë\r\n".encode("cp1252")
    assert "cannot represent this text" in await harness.fails("write_file_chunk", path="a.txt", content="日本")


async def test_limits(harness, monkeypatch):
    monkeypatch.setattr(write_chunk, "MAX_CHARACTERS", 10)
    monkeypatch.setattr(write_chunk, "MAX_FILES", 2)
    assert "split it into several files" in await harness.fails("write_chunk", path="a", content="x" * 11)
    await harness.ok("write_chunk", path="a", content="x")
    await harness.ok("write_chunk", path="b", content="x")
    assert "files are unfinished" in await harness.fails("write_chunk", path="c", content="x")


@pytest.mark.req("FS-2", "PM-1")
async def test_rule_against_writing_applies_to_pieces(make_harness):
    rules = (Rule("*", "*", "allow"), Rule("edit", "*", "deny", "test"))
    harness = make_harness(policy=Policy(rules=rules))
    for name in ("write_chunk", "write_file_chunk"):
        assert (await harness.call(name, {"path": "a", "content": "x", "final": True})).status == "denied"
    assert list(harness.root.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "a"}, "write_chunk needs content"),
        ({"path": "a", "content": ["x", "y"]}, "content must be a string"),
        ({"path": "", "content": "x"}, "the path is empty"),
        ({"path": "a", "content": "x", "mode": "prepend"}, "it can be append, gather, overwrite"),
    ],
    ids=str,
)
async def test_bad_pieces(harness, arguments, message):
    assert message in await harness.fails("write_chunk", **arguments)


async def test_single_piece_is_counted_in_the_singular(harness):
    done = await harness.ok("write_chunk", path="one.txt", content="x\n", final=True)
    assert done.for_model == "created one.txt (+1 -0)\n1 piece"
