"""The edit tool on a real workspace: changed bytes, permissions and errors."""

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


class EditHarness:
    """A session with the edit tool on a real workspace."""

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

    def recorded(self, kind):
        return [event for event in self.session.events() if isinstance(event, kind)]


@pytest.fixture
async def make_harness(tmp_path):
    harnesses = []

    async def make(policy=ALLOW_ALL):
        workspace = LocalWorkspace(str(tmp_path))
        session = await open_test_session(
            ScriptedBackend([]), [ReadTool(), WriteTool(), EditTool()], workspace, policy=policy
        )
        harnesses.append(EditHarness(session, workspace, tmp_path))
        return harnesses[-1]

    yield make
    for harness in harnesses:
        await harness.session.aclose()
        harness.workspace.close()


@pytest.fixture
async def harness(make_harness):
    return await make_harness()


@pytest.mark.req("TL-6")
async def test_text_is_replaced_and_reported(harness):
    harness.put(b"one\ntwo\nthree\n")
    result = await harness.edit(old="two", new="2\n2")
    assert (result.status, result.for_model) == ("ok", "updated f.txt (+2 -1)")
    assert harness.get() == b"one\n2\n2\nthree\n"
    assert result.data["diff"].endswith("@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2\n three\n")
    data_without_diff = {key: value for key, value in result.data.items() if key != "diff"}
    assert data_without_diff == {
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
async def test_tolerant_match_is_reported(harness):
    harness.put(b"one  \ntwo\n")
    result = await harness.edit(old="one\ntwo\n", new="1\ntwo\n")
    assert "matched: trailing blanks" in result.for_model
    assert result.data["matched"] == ["trailing blanks"]
    assert harness.get() == b"1\ntwo\n"


@pytest.mark.req("TL-6")
async def test_edits_are_applied_in_order(harness):
    harness.put(b"a\nb\nc\na\n")
    edits = [{"old": "b", "new": "B"}, {"old": "B\nc", "new": "BC"}, {"old": "a", "new": "A", "replace_all": True}]
    result = await harness.edit(edits=edits)
    assert (result.status, harness.get(), result.data["replacements"]) == ("ok", b"A\nBC\nA\n", 4)


@pytest.mark.req("TL-6")
async def test_one_failing_edit_changes_nothing(harness):
    harness.put(b"a\nb\n")
    result = await harness.edit(edits=[{"old": "a", "new": "A"}, {"old": "zzz", "new": "Z"}])
    assert (result.status, result.fault.code, harness.get()) == ("failed", "no_match", b"a\nb\n")
    assert "edit 2 of 2" in result.for_model


@pytest.mark.req("TL-6", "TL-8")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
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
async def test_invalid_call_is_rejected_with_advice(harness, arguments, code, message):
    harness.put(b"a\n")
    (harness.folder / "folder").mkdir()
    harness.put(b"\x89PNG\r\n\x1a\n\0\0\0", "image.png")
    result = await harness.edit(**arguments)
    assert (result.status, result.fault.code) == ("failed", code)
    assert message in result.for_model
    assert harness.get() == b"a\n"


@pytest.mark.req("TL-6")
async def test_empty_old_creates_or_fills_an_empty_file(harness):
    assert (await harness.edit("new/dir/f.py", old="", new="x\n")).data["operation"] == "created"
    assert harness.get("new/dir/f.py") == b"x\n"
    harness.put(b"")
    assert (await harness.edit(old="", new="y\n")).status == "ok"
    assert harness.get() == b"y\n"


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
@pytest.mark.sampled
async def test_bytes_outside_the_match_are_kept(harness, encoding, end, final):
    word = WORDS.get(encoding, "Grüße 世界 😀")
    ends = {"mixed": ["\n", "\r\n", "\n", "\r\n", "\n"]}.get(end, [end] * 5)
    lines = [word, "first", "second", word, "last " + word]
    text = "".join(line + line_end for line, line_end in zip(lines, ends, strict=True))
    text = text if final else text[: -len(ends[-1])]
    data = text.encode(encoding)
    harness.put(data)
    result = await harness.edit(old="first\nsecond", new="FIRST\nadded\nSECOND")
    assert result.status == "ok", result.for_model
    bare = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}.get(encoding, encoding)
    before, _, after = data.partition("first".encode(bare))
    rest = after.partition("second".encode(bare))[2]
    expected = f"FIRST{ends[1]}added{ends[1]}SECOND".encode(bare)
    assert harness.get() == before + expected + rest


@pytest.mark.req("FS-5", "TL-6")
async def test_unencodable_text_is_rejected(harness):
    data = WORDS["koi8-r"].encode("koi8-r") + b"\n"
    harness.put(data)
    result = await harness.edit(old="русский", new="日本語")
    assert (result.status, result.fault.code, harness.get()) == ("failed", "unencodable", data)


@pytest.mark.req("FS-5")
async def test_mode_and_links_are_kept(harness):
    harness.put(b"a\n", "real.sh")
    (harness.folder / "real.sh").chmod(0o755)
    os.link(harness.folder / "real.sh", harness.folder / "twin.sh")
    (harness.folder / "link.sh").symlink_to("real.sh")
    assert (await harness.edit("link.sh", old="a", new="b")).status == "ok"
    assert (harness.folder / "link.sh").is_symlink()
    assert harness.get("real.sh") == harness.get("twin.sh") == b"b\n"
    assert stat.S_IMODE((harness.folder / "real.sh").stat().st_mode) == 0o755


@pytest.mark.req("FS-6")
async def test_file_changed_since_it_was_read_is_not_edited(harness):
    harness.put(b"a\nb\nc\n")
    await harness.call("read", path="f.txt")
    harness.put(b"a\nBY A USER\nc\n")
    result = await harness.edit(old="a", new="A")
    assert (result.status, result.fault.code) == ("failed", "changed_on_disk")
    assert "-b\n+BY A USER" in result.for_model
    assert harness.get() == b"a\nBY A USER\nc\n"
    await harness.call("read", path="f.txt")
    assert (await harness.edit(old="a", new="A")).status == "ok"
    assert harness.get() == b"A\nBY A USER\nc\n"


@pytest.mark.req("FS-6")
async def test_preview_does_not_mark_a_changed_file_as_read(harness):
    harness.put(b"old\n")
    await harness.call("read", path="f.txt")
    harness.put(b"BY A USER\n")
    result = await harness.call("write", path="f.txt", content="mine\n")
    assert (result.status, result.fault.code, harness.get()) == ("failed", "changed_on_disk", b"BY A USER\n")


async def test_diff_of_very_long_lines_is_truncated(harness):
    harness.put(b"a" * 3_000_000 + b" end\n")
    result = await harness.edit(old=" end", new=" END")
    assert len(result.data["diff"]) <= 100_000
    assert result.data["diff_truncated"]
    assert sum(len(block.diff) for block in result.for_human.blocks) <= 1_000_000
    assert "characters of the diff omitted" in result.data["diff"]


async def test_closest_part_is_shown_from_its_start(harness):
    harness.put(b"def f():\n    return 2\n")
    assert "it has 'return 2' where old has 'return 1'" in (await harness.edit(old="return 1", new="x")).for_model


@pytest.mark.req("FS-6")
@pytest.mark.parametrize("was_read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize(
    "meanwhile",
    [b"a\nBY A USER\n", b"head\na\nb\n", b"BY A USER\n", b"A\nb\n", None],
    ids=["another line", "moved", "gone", "already applied", "deleted"],
)
async def test_only_the_approved_change_is_written(make_harness, was_read, meanwhile):
    harness = await make_harness(Policy(rules=(Rule("*", "*", "ask", "test"), Rule("read", "*", "allow", "test"))))
    harness.put(b"a\nb\n")
    if was_read:
        await harness.call("read", path="f.txt")
    subscription = harness.session.subscribe()

    async def answer():
        async for envelope in subscription:
            if isinstance(envelope.event, PermissionAsked):
                if meanwhile is None:
                    (harness.folder / "f.txt").unlink()
                else:
                    harness.put(meanwhile)
                harness.session.answer(envelope.event.ask_id, Decision("allow", by="person"))

    answer_task = asyncio.ensure_future(answer())
    result = await harness.edit(old="a\n", new="A\n")
    answer_task.cancel()
    assert result.status == "failed"
    assert result.fault.code in ("changed_on_disk", "not_found")
    if meanwhile is not None:
        assert harness.get() == meanwhile
        assert "it changed after this call was checked; nothing was written" in result.for_model


@pytest.mark.req("FS-6")
async def test_own_edit_does_not_hide_a_change_by_others(make_harness):
    harness = await make_harness()
    harness.put(b"a\nb\n")
    await harness.edit(old="a", new="A")
    harness.put(b"A\nb\nBY A USER\n")
    result = await harness.edit(old="b", new="B")
    assert (result.status, result.fault.code, harness.get()) == ("failed", "changed_on_disk", b"A\nb\nBY A USER\n")


@pytest.mark.req("FS-6")
async def test_concurrent_edits_lose_nothing(harness):
    harness.put("".join(f"line {n}.\n" for n in range(40)).encode())
    results = await asyncio.gather(*(harness.edit(old=f"line {n}.", new=f"done {n}.") for n in range(40)))
    assert {result.status for result in results} == {"ok"}
    assert harness.get() == "".join(f"done {n}.\n" for n in range(40)).encode()


@pytest.mark.req("FS-2", "FS-3")
@pytest.mark.parametrize("path", ["../out.txt", "/etc/hostname", "link/out.txt"])
async def test_nothing_outside_is_edited_or_shown(harness, path):
    outside = harness.folder.parent / "out.txt"
    outside.write_text("SECRET\n")
    (harness.folder / "link").symlink_to(harness.folder.parent)
    result = await harness.edit(path, old="x", new="y")
    assert result.status == "denied"
    assert "SECRET" not in result.for_model
    assert outside.read_text() == "SECRET\n"


@pytest.mark.req("PM-5")
async def test_preview_shows_the_change(harness):
    harness.put(b"one\ntwo  \n")
    tool = EditTool()
    permission = await tool.permission(tool.parse({"path": "f.txt", "old": "one\ntwo", "new": "1"}), harness.workspace)
    assert [(need.key, need.subject, need.danger) for need in permission.needs] == [
        ("edit", "f.txt", "ordinary"),
        ("read", "f.txt", "ordinary"),
    ]
    assert permission.preview.summary == "updated f.txt (+1 -2)"
    (shown,) = permission.preview.blocks
    assert shown.diff.endswith("-one\n-two  \n+1  \n")
    assert harness.get() == b"one\ntwo  \n"


@pytest.mark.req("PM-5")
async def test_large_diff_is_truncated(harness):
    harness.put(b"a\n" * 3000)
    result = await harness.edit(old="a", new="b", replace_all=True)
    assert (result.data["additions"], result.data["diff_truncated"]) == (3000, True)
    assert len(result.data["diff"].splitlines()) <= 402
    assert result.for_model == "updated f.txt (+3000 -3000)\n3000 places"
    assert result.for_human.blocks[0].truncated


@pytest.mark.req("PM-1", "TL-6")
async def test_error_shows_only_readable_files(make_harness):
    secret = Policy(rules=(Rule("*", "*", "allow", "test"), Rule("read", "*.env", "deny", "test")))
    harness = await make_harness(secret)
    harness.put(b"PASSWORD=hunter2\n", "x.env")
    result = await harness.edit("x.env", old="PASSWORD=hunter3", new="PASSWORD=x")
    assert result.status == "denied"
    assert "hunter2" not in result.for_model
    right = await harness.edit("x.env", old="PASSWORD=hunter2", new="PASSWORD=x")
    assert (right.status, right.for_model) == (result.status, result.for_model)


@pytest.mark.req("PM-1")
async def test_edit_that_cannot_apply_needs_no_approval(make_harness):
    rules = (Rule("*", "*", "ask", "test"), Rule("read", "*", "allow", "test"))
    harness = await make_harness(Policy(rules=rules))
    harness.put(b"a\n")
    result = await harness.edit(old="zzz", new="y")
    assert (result.status, result.fault.code) == ("failed", "no_match")
    assert harness.recorded(PermissionAsked) == []


@pytest.mark.req("PM-1")
async def test_planned_error_remains_when_the_file_changes(harness):
    """A call that was only allowed to read must not write, even if its text exists by now."""
    harness.put(b"a\n")
    tool = EditTool()
    params = tool.parse({"path": "f.txt", "old": "b", "new": "c"})
    permission = await tool.permission(params, harness.workspace)
    assert [need.key for need in permission.needs] == ["read"]
    harness.put(b"b\n")

    class Context:
        workspace = harness.workspace

    with pytest.raises(Exception, match="does not contain that text"):
        await tool.run(params, Context())
    assert harness.get() == b"b\n"


@pytest.mark.slow
@pytest.mark.req("TL-6")
@pytest.mark.parametrize(("end", "shift"), [("\n", "    "), ("\r\n", "")], ids=["exact", "shifted, CRLF"])
async def test_edit_of_a_large_file_is_fast(harness, end, shift):
    lines = [f"    line number {n} of a large file, with text {n * 7}" for n in range(100_000)]
    harness.put(end.join(lines).encode())
    old = "\n".join(shift + line.strip() for line in lines[50_000:50_003])
    started = time.process_time()
    result = await harness.edit(old=old, new=f"{shift}a\n{shift}b")
    assert time.process_time() - started < 10  # a bound against quadratic cost; it takes well under a second
    assert result.status == "ok"
    assert harness.get() == end.join([*lines[:50_000], "    a", "    b", *lines[50_003:]]).encode()


@pytest.mark.req("TL-3")
def test_schema_is_small_and_lists_required_parameters():
    schema = EditTool().spec.schema
    assert schema["required"] == ["path"]
    assert set(schema["properties"]) == {"path", "old", "new", "replace_all", "edits"}
    assert schema["properties"]["edits"]["items"]["required"] == ["old", "new"]
