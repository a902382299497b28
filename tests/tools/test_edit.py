"""The edit tool on a real workspace, behind the real door: what it does to bytes, what it asks, what it refuses."""

import asyncio
import os
import stat
import time

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import PermissionAsked
from ostler.core.permission import Decision, Rule
from ostler.core.tools import ToolCall
from ostler.policy.verdict import Policy
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session
from ostler.tools.edit import EditTool
from ostler.tools.read import ReadTool
from ostler.tools.write import WriteTool
from ostler.workspace.local_workspace import LocalWorkspace


class Door:
    """A session whose calls come from outside."""

    def __init__(self, session, workspace, folder):
        self.session, self.workspace, self.folder = session, workspace, folder
        self._calls = 0

    async def call(self, tool, **arguments):
        self._calls += 1
        return await self.session.call(ToolCall(f"call-{self._calls}", tool, arguments))

    async def edit(self, path="f.txt", **arguments):
        return await self.call("edit", path=path, **arguments)

    def put(self, data, path="f.txt"):
        (self.folder / path).write_bytes(data)

    def get(self, path="f.txt"):
        return (self.folder / path).read_bytes()

    def past(self, kind):
        return [event for event in self.session.events() if isinstance(event, kind)]


@pytest.fixture
async def opened(tmp_path):
    doors = []

    async def open_door(policy=ALLOW_ALL):
        workspace = LocalWorkspace(str(tmp_path))
        session = await open_test_session(
            ScriptedBackend([]), [ReadTool(), WriteTool(), EditTool()], workspace, policy=policy
        )
        doors.append(Door(session, workspace, tmp_path))
        return doors[-1]

    yield open_door
    for door in doors:
        await door.session.aclose()
        door.workspace.close()


@pytest.fixture
async def door(opened):
    return await opened()


@pytest.mark.req("TL-6")
async def test_a_text_is_replaced_and_told(door):
    door.put(b"one\ntwo\nthree\n")
    result = await door.edit(old="two", new="2\n2")
    assert (result.status, result.for_model) == ("ok", "updated f.txt (+2 -1)")
    assert door.get() == b"one\n2\n2\nthree\n"
    assert result.data["diff"].endswith("@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2\n three\n")
    kept = {key: value for key, value in result.data.items() if key != "diff"}
    assert kept == {
        "path": "f.txt",
        "operation": "updated",
        "size": 14,
        "additions": 2,
        "deletions": 1,
        "diff_truncated": False,
        "replacements": 1,
        "matched": ["exact"],
    }
    (shown,) = result.for_human.blocks
    assert (shown.path, shown.operation, shown.additions, shown.deletions) == ("f.txt", "updated", 2, 1)


@pytest.mark.req("TL-6")
async def test_a_tolerant_match_is_reported(door):
    door.put(b"one  \ntwo\n")
    result = await door.edit(old="one\ntwo\n", new="1\ntwo\n")
    assert "matched: trailing blanks" in result.for_model
    assert result.data["matched"] == ["trailing blanks"]
    assert door.get() == b"1\ntwo\n"


@pytest.mark.req("TL-6")
async def test_several_edits_are_made_in_order(door):
    door.put(b"a\nb\nc\na\n")
    edits = [{"old": "b", "new": "B"}, {"old": "B\nc", "new": "BC"}, {"old": "a", "new": "A", "replace_all": True}]
    result = await door.edit(edits=edits)
    assert (result.status, door.get(), result.data["replacements"]) == ("ok", b"A\nBC\nA\n", 4)


@pytest.mark.req("TL-6")
async def test_one_bad_edit_of_several_changes_nothing(door):
    door.put(b"a\nb\n")
    result = await door.edit(edits=[{"old": "a", "new": "A"}, {"old": "zzz", "new": "Z"}])
    assert (result.status, result.fault.code, door.get()) == ("failed", "no_match", b"a\nb\n")
    assert "edit 2 of 2" in result.for_model


@pytest.mark.req("TL-6", "TL-8")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({}, "bad_arguments", "old is missing"),
        ({"old": "a"}, "bad_arguments", "new is missing"),
        ({"new": "a"}, "bad_arguments", "old is missing"),
        ({"old": "a", "new": "b", "edits": [{"old": "a", "new": "b"}]}, "bad_arguments", "not both"),
        ({"edits": [{"old": "a"}]}, "bad_arguments", "new"),
        ({"edits": "a"}, "bad_arguments", "edits"),
        ({"old": {"b": 1}, "new": "x"}, "bad_arguments", "old"),
        ({"old": "a", "new": "b", "mode": "x"}, "bad_arguments", "takes no 'mode'"),
        ({"old": "", "new": "x"}, "bad_edit", "old is empty"),
        ({"old": "a", "new": "a"}, "bad_edit", "the same"),
        ({"old": "b", "new": "a"}, "no_match", "does not contain that text"),
        ({"old": "a", "new": "b", "path": "nope.txt"}, "not_found", "nope.txt"),
        ({"old": "a", "new": "b", "path": "folder"}, "not_a_file", "folder"),
        ({"old": "a", "new": "b", "path": "image.png"}, "binary", "image.png"),
        ({"old": "a", "new": "b", "path": "bad\0name"}, "bad_path", "NUL"),
    ],
)
async def test_a_bad_call_is_told_how_to_mend_it(door, arguments, code, said):
    door.put(b"a\n")
    (door.folder / "folder").mkdir()
    door.put(b"\x89PNG\r\n\x1a\n\0\0\0", "image.png")
    result = await door.edit(**arguments)
    assert (result.status, result.fault.code) == ("failed", code)
    assert said in result.for_model
    assert door.get() == b"a\n"


@pytest.mark.req("TL-6")
async def test_an_empty_old_makes_or_fills_an_empty_file(door):
    assert (await door.edit("new/dir/f.py", old="", new="x\n")).data["operation"] == "created"
    assert door.get("new/dir/f.py") == b"x\n"
    door.put(b"")
    assert (await door.edit(old="", new="y\n")).status == "ok"
    assert door.get() == b"y\n"


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "gb18030", "shift_jis", "euc-kr", "koi8-r")
WORDS = {
    "cp1252": "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich, “schön” – für übermäßige Größe",
    "gb18030": "我们的程序员正在编写一个新的程序，这个程序可以读取和修改文件中的文字内容。中国的人民大家都很好",
    "shift_jis": "これは日本語の文章です。プログラムを書いて、ファイルを変更することができます。ありがとうございます",
    "euc-kr": "이것은 한국어로 된 문장입니다. 프로그램을 작성하고 파일을 수정할 수 있습니다. 감사합니다 안녕하세요",
    "koi8-r": "Это русский текст, который нужно сохранить без изменений. Программа читает и изменяет файлы на диске",
}


@pytest.mark.req("FS-5", "TL-6")
@pytest.mark.parametrize("final", [True, False], ids=["ended", "open"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "mixed"], ids=["LF", "CRLF", "CR", "mixed"])
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_bytes_outside_the_span_stay(door, encoding, end, final):
    word = WORDS.get(encoding, "Grüße 世界 😀")
    ends = {"mixed": ["\n", "\r\n", "\n", "\r\n", "\n"]}.get(end, [end] * 5)
    lines = [word, "first", "second", word, "last " + word]
    text = "".join(line + line_end for line, line_end in zip(lines, ends, strict=True))
    text = text if final else text[: -len(ends[-1])]
    data = text.encode(encoding)
    door.put(data)
    result = await door.edit(old="first\nsecond", new="FIRST\nadded\nSECOND")
    assert result.status == "ok", result.for_model
    bare = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}.get(encoding, encoding)
    before, _, after = data.partition("first".encode(bare))
    rest = after.partition("second".encode(bare))[2]
    made = f"FIRST{ends[1]}added{ends[1]}SECOND".encode(bare)
    assert door.get() == before + made + rest


@pytest.mark.req("FS-5", "TL-6")
async def test_a_letter_the_encoding_cannot_hold_is_refused(door):
    data = WORDS["koi8-r"].encode("koi8-r") + b"\n"
    door.put(data)
    result = await door.edit(old="русский", new="日本語")
    assert (result.status, result.fault.code, door.get()) == ("failed", "unencodable", data)


@pytest.mark.req("FS-5")
async def test_mode_links_and_other_names_stay(door):
    door.put(b"a\n", "real.sh")
    (door.folder / "real.sh").chmod(0o755)
    os.link(door.folder / "real.sh", door.folder / "twin.sh")
    (door.folder / "link.sh").symlink_to("real.sh")
    assert (await door.edit("link.sh", old="a", new="b")).status == "ok"
    assert (door.folder / "link.sh").is_symlink()
    assert door.get("real.sh") == door.get("twin.sh") == b"b\n"
    assert stat.S_IMODE((door.folder / "real.sh").stat().st_mode) == 0o755


@pytest.mark.req("FS-6")
async def test_a_file_changed_since_it_was_read_is_not_edited_blindly(door):
    door.put(b"a\nb\nc\n")
    await door.call("read", path="f.txt")
    door.put(b"a\nBY A PERSON\nc\n")
    result = await door.edit(old="a", new="A")
    assert (result.status, result.fault.code) == ("failed", "changed_on_disk")
    assert "-b\n+BY A PERSON" in result.for_model
    assert door.get() == b"a\nBY A PERSON\nc\n"
    await door.call("read", path="f.txt")
    assert (await door.edit(old="a", new="A")).status == "ok"
    assert door.get() == b"A\nBY A PERSON\nc\n"


@pytest.mark.req("FS-6")
async def test_a_preview_does_not_hide_a_change_from_write(door):
    door.put(b"old\n")
    await door.call("read", path="f.txt")
    door.put(b"BY A PERSON\n")
    result = await door.call("write", path="f.txt", content="mine\n")
    assert (result.status, result.fault.code, door.get()) == ("failed", "changed_on_disk", b"BY A PERSON\n")


async def test_what_is_shown_of_very_long_lines_is_bounded(door):
    door.put(b"a" * 3_000_000 + b" end\n")
    result = await door.edit(old=" end", new=" END")
    assert len(result.data["diff"]) <= 100_000
    assert result.data["diff_truncated"]
    assert sum(len(block.diff) for block in result.for_human.blocks) <= 1_000_000
    assert "characters of the diff left out" in result.data["diff"]


async def test_the_part_that_is_nearest_is_shown_from_its_beginning(door):
    door.put(b"def f():\n    return 2\n")
    assert "it has 'return 2' where old has 'return 1'" in (await door.edit(old="return 1", new="x")).for_model


@pytest.mark.req("FS-6")
@pytest.mark.parametrize("was_read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize(
    "meanwhile",
    [b"a\nBY A PERSON\n", b"head\na\nb\n", b"BY A PERSON\n", b"A\nb\n", None],
    ids=["another line", "moved", "gone", "made already", "deleted"],
)
async def test_what_was_approved_is_written_or_nothing(opened, was_read, meanwhile):
    door = await opened(Policy(rules=(Rule("*", "*", "ask", "test"), Rule("read", "*", "allow", "test"))))
    door.put(b"a\nb\n")
    if was_read:
        await door.call("read", path="f.txt")
    reading = door.session.subscribe()

    async def answer():
        async for envelope in reading:
            if isinstance(envelope.event, PermissionAsked):
                if meanwhile is None:
                    (door.folder / "f.txt").unlink()
                else:
                    door.put(meanwhile)
                door.session.answer(envelope.event.ask_id, Decision("allow", by="person"))

    answering = asyncio.ensure_future(answer())
    result = await door.edit(old="a\n", new="A\n")
    answering.cancel()
    assert result.status == "failed"
    assert result.fault.code in ("changed_on_disk", "not_found")
    if meanwhile is not None:
        assert door.get() == meanwhile
        assert "it changed after this call was checked; nothing was written" in result.for_model


@pytest.mark.req("FS-6")
async def test_an_edit_of_our_own_meanwhile_hides_nobody_elses(opened):
    door = await opened()
    door.put(b"a\nb\n")
    await door.edit(old="a", new="A")
    door.put(b"A\nb\nBY A PERSON\n")
    result = await door.edit(old="b", new="B")
    assert (result.status, result.fault.code, door.get()) == ("failed", "changed_on_disk", b"A\nb\nBY A PERSON\n")


@pytest.mark.req("FS-6")
async def test_edits_side_by_side_lose_nothing(door):
    door.put("".join(f"line {n}.\n" for n in range(40)).encode())
    results = await asyncio.gather(*(door.edit(old=f"line {n}.", new=f"done {n}.") for n in range(40)))
    assert {result.status for result in results} == {"ok"}
    assert door.get() == "".join(f"done {n}.\n" for n in range(40)).encode()


@pytest.mark.req("FS-2", "FS-3")
@pytest.mark.parametrize("path", ["../out.txt", "/etc/hostname", "link/out.txt"])
async def test_nothing_outside_is_edited_or_shown(door, path):
    outside = door.folder.parent / "out.txt"
    outside.write_text("SECRET\n")
    (door.folder / "link").symlink_to(door.folder.parent)
    result = await door.edit(path, old="x", new="y")
    assert result.status == "denied"
    assert "SECRET" not in result.for_model
    assert outside.read_text() == "SECRET\n"


@pytest.mark.req("PM-5")
async def test_the_preview_shows_what_will_happen(door):
    door.put(b"one\ntwo  \n")
    tool = EditTool()
    permission = await tool.permission(tool.parse({"path": "f.txt", "old": "one\ntwo", "new": "1"}), door.workspace)
    assert [(need.key, need.subject, need.danger) for need in permission.needs] == [("edit", "f.txt", "ordinary")]
    assert permission.preview.summary == "updated f.txt (+1 -2)"
    (shown,) = permission.preview.blocks
    assert shown.diff.endswith("-one\n-two  \n+1  \n")
    assert door.get() == b"one\ntwo  \n"


@pytest.mark.req("PM-5")
async def test_a_large_diff_is_cut_and_says_so(door):
    door.put(b"a\n" * 3000)
    result = await door.edit(old="a", new="b", replace_all=True)
    assert (result.data["additions"], result.data["diff_truncated"]) == (3000, True)
    assert len(result.data["diff"].splitlines()) <= 402
    assert result.for_model == "updated f.txt (+3000 -3000)\n3000 places"
    assert result.for_human.blocks[0].truncated


@pytest.mark.req("PM-1", "TL-6")
async def test_a_miss_shows_only_what_may_be_read(opened):
    secret = Policy(rules=(Rule("*", "*", "allow", "test"), Rule("read", "*.env", "deny", "test")))
    door = await opened(secret)
    door.put(b"PASSWORD=hunter2\n", "x.env")
    result = await door.edit("x.env", old="PASSWORD=hunter3", new="PASSWORD=x")
    assert result.status == "denied"
    assert "hunter2" not in result.for_model
    assert (await door.edit("x.env", old="PASSWORD=hunter2", new="PASSWORD=x")).status == "ok"


@pytest.mark.req("PM-1")
async def test_a_call_that_cannot_be_done_is_not_asked_about(opened):
    rules = (Rule("*", "*", "ask", "test"), Rule("read", "*", "allow", "test"))
    door = await opened(Policy(rules=rules))
    door.put(b"a\n")
    result = await door.edit(old="zzz", new="y")
    assert (result.status, result.fault.code) == ("failed", "no_match")
    assert door.past(PermissionAsked) == []


@pytest.mark.req("PM-1")
async def test_a_foreseen_failure_stays_one_when_the_file_changes_meanwhile(door):
    """What was only allowed to read must not write, even if the text has come to be there since."""
    door.put(b"a\n")
    tool = EditTool()
    params = tool.parse({"path": "f.txt", "old": "b", "new": "c"})
    permission = await tool.permission(params, door.workspace)
    assert [need.key for need in permission.needs] == ["read"]
    door.put(b"b\n")

    class Context:
        workspace = door.workspace

    with pytest.raises(Exception, match="does not contain that text"):
        await tool.run(params, Context())
    assert door.get() == b"b\n"


@pytest.mark.slow
@pytest.mark.req("TL-6")
@pytest.mark.parametrize(("end", "shift"), [("\n", "    "), ("\r\n", "")], ids=["exact", "shifted, CRLF"])
async def test_an_edit_of_a_large_file_costs_little(door, end, shift):
    lines = [f"    line number {n} of a large file, with text {n * 7}" for n in range(100_000)]
    door.put(end.join(lines).encode())
    old = "\n".join(shift + line.strip() for line in lines[50_000:50_003])
    begun = time.process_time()
    result = await door.edit(old=old, new=f"{shift}a\n{shift}b")
    assert time.process_time() - begun < 10  # a bound against quadratic cost; it takes well under a second
    assert result.status == "ok"
    assert door.get() == end.join([*lines[:50_000], "    a", "    b", *lines[50_003:]]).encode()


@pytest.mark.req("TL-3")
def test_the_schema_is_small_and_says_what_is_needed():
    schema = EditTool().spec.schema
    assert schema["required"] == ["path"]
    assert set(schema["properties"]) == {"path", "old", "new", "replace_all", "edits"}
    assert schema["properties"]["edits"]["items"]["required"] == ["old", "new"]
