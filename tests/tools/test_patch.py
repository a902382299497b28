"""The patch tool on a real workspace: all files or none, and its permissions."""

import asyncio
import os
import stat
import time

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import PathError
from ostler.core.events import PermissionAsked
from ostler.core.permission import Decision, Rule
from ostler.core.tools import ToolCall
from ostler.policy.verdict import Policy
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session
from ostler.tools.patch import PatchTool
from ostler.tools.read import ReadTool
from ostler.workspace import change_steps
from ostler.workspace.local_workspace import LocalWorkspace


class PatchHarness:
    """A session with the patch tool on a real workspace."""

    def __init__(self, session, workspace, folder):
        self.session, self.workspace, self.folder = session, workspace, folder
        self._calls = 0

    async def call(self, tool, **arguments):
        self._calls += 1
        return await self.session.call(ToolCall(f"call-{self._calls}", tool, arguments))

    async def patch(self, patch, **arguments):
        return await self.call("patch", patch=patch, **arguments)

    async def needs(self, patch, **arguments):
        tool = PatchTool()
        permission = await tool.permission(tool.parse({"patch": patch, **arguments}), self.workspace)
        return [(need.key, need.subject) for need in permission.needs]

    def put(self, path, data):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(data)

    def tree(self):
        found = sorted(path for path in self.folder.rglob("*") if not path.is_dir())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def folders(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_dir())


@pytest.fixture
async def make_harness(tmp_path):
    harnesses = []

    async def make(policy=ALLOW_ALL):
        workspace = LocalWorkspace(str(tmp_path))
        session = await open_test_session(ScriptedBackend([]), [ReadTool(), PatchTool()], workspace, policy=policy)
        harnesses.append(PatchHarness(session, workspace, tmp_path))
        return harnesses[-1]

    yield make
    for harness in harnesses:
        await harness.session.aclose()
        harness.workspace.close()


@pytest.fixture
async def harness(make_harness):
    return await make_harness()


def begin(inside):
    return f"*** Begin Patch\n{inside}*** End Patch\n"


ALL_KINDS = """diff --git a/changed.txt b/changed.txt
--- a/changed.txt
+++ b/changed.txt
@@ -1,2 +1,3 @@
 one
-two
+2
+3
diff --git a/new/made.sh b/new/made.sh
new file mode 100755
--- /dev/null
+++ b/new/made.sh
@@ -0,0 +1 @@
+echo
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/old.txt b/deep/er/new.txt
similarity index 60%
rename from old.txt
rename to deep/er/new.txt
--- a/old.txt
+++ b/deep/er/new.txt
@@ -1,2 +1,2 @@
-a
+A
 b
diff --git a/source.txt b/copy.txt
copy from source.txt
copy to copy.txt
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
"""


def write_all_kinds(harness):
    harness.put("changed.txt", b"one\ntwo\n")
    harness.put("gone.txt", b"bye\n")
    harness.put("old.txt", b"a\nb\n")
    harness.put("source.txt", b"s\n")
    harness.put("run.sh", b"echo\n")


@pytest.mark.req("TL-5")
async def test_all_kinds_of_changes_in_one_patch(harness):
    write_all_kinds(harness)
    (harness.folder / "old.txt").chmod(0o640)
    result = await harness.patch(ALL_KINDS)
    assert result.status == "ok", result.for_model
    assert harness.tree() == {
        "changed.txt": b"one\n2\n3\n",
        "copy.txt": b"s\n",
        "deep/er/new.txt": b"A\nb\n",
        "new/made.sh": b"echo\n",
        "run.sh": b"echo\n",
        "source.txt": b"s\n",
    }
    modes = {name: stat.S_IMODE((harness.folder / name).stat().st_mode) for name in ("new/made.sh", "run.sh")}
    assert all(mode & 0o100 for mode in modes.values())
    assert stat.S_IMODE((harness.folder / "deep/er/new.txt").stat().st_mode) == 0o640
    assert result.data == {
        "ok": True,
        "dry_run": False,
        "applied": 6,
        "files": [
            {"path": "changed.txt", "operation": "updated", "additions": 2, "deletions": 1, "bytes": 8},
            {"path": "new/made.sh", "operation": "created", "additions": 1, "deletions": 0, "bytes": 5},
            {"path": "gone.txt", "operation": "deleted", "additions": 0, "deletions": 1, "bytes": 0},
            {
                "path": "deep/er/new.txt",
                "operation": "renamed",
                "additions": 1,
                "deletions": 1,
                "bytes": 4,
                "from": "old.txt",
            },
            {"path": "copy.txt", "operation": "created", "additions": 1, "deletions": 0, "bytes": 2},
            {"path": "run.sh", "operation": "updated", "additions": 0, "deletions": 0, "bytes": 5},
        ],
    }
    shown = [(block.path, block.operation) for block in result.for_human.blocks]
    assert shown[:2] == [("changed.txt", "updated"), ("new/made.sh", "created")]


@pytest.mark.req("TL-5")
async def test_begin_patch_format(harness):
    harness.put("a.txt", b"one\ntwo\n")
    harness.put("b.txt", b"x\n")
    harness.put("c.txt", b"left\n")
    result = await harness.patch(
        begin(
            "*** Add File: new/n.txt\n+hello\n+\n+world\n"
            "*** Update File: a.txt\n*** Move to: moved/a.txt\n@@\n one\n-two\n+2\n"
            "*** Update File: b.txt\n-x\n+y\n"
            "*** Delete File: c.txt\n"
        )
    )
    assert result.status == "ok", result.for_model
    assert harness.tree() == {"b.txt": b"y\n", "moved/a.txt": b"one\n2\n", "new/n.txt": b"hello\n\nworld\n"}
    operations = [(file["path"], file["operation"]) for file in result.data["files"]]
    assert operations == [
        ("new/n.txt", "created"),
        ("moved/a.txt", "renamed"),
        ("b.txt", "updated"),
        ("c.txt", "deleted"),
    ]


BROKEN = {
    "a hunk that does not apply": ("--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-nope\n+x\n", "rejected"),
    "a missing file": ("--- a/nope\n+++ b/nope\n@@ -1 +1 @@\n-a\n+x\n", "not_found"),
    "a new file that exists": ("--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1 @@\n+x\n", "already_exists"),
    "a new file with old lines": ("--- /dev/null\n+++ b/n\n@@ -1 +1,2 @@\n a\n+x\n", "bad_patch"),
    "a deletion that shows too little": ("--- a/run.sh\n+++ /dev/null\n@@ -1,0 +0,0 @@\n", "bad_patch"),
    "a deletion of other lines": ("--- a/run.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-nope\n", "rejected"),
    "a deletion of only some lines": ("--- a/run.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-echo\n", None),
    "a rename onto a file": ("diff --git a/run.sh b/image\nrename from run.sh\nrename to image\n", "already_exists"),
    "a rename of a missing file": ("diff --git a/no b/n\nrename from no\nrename to n\n", "not_found"),
    "a binary file": ("--- a/image\n+++ b/image\n@@ -1 +1 @@\n-a\n+b\n", "binary"),
    "a directory": ("--- a/folder\n+++ b/folder\n@@ -1 +1 @@\n-a\n+b\n", "not_a_file"),
    "a deleted link": ("diff --git a/link b/link\ndeleted file mode 100644\n", "rejected"),
    "an unencodable character": ("--- a/latin\n+++ b/latin\n@@ -1 +1 @@\n-Größe für schöne Käufer\n+世", "unencodable"),
    "a file below a file": ("--- /dev/null\n+++ b/run.sh/x\n@@ -0,0 +1 @@\n+x\n", "not_a_directory"),
    "an invalid name": ("--- /dev/null\n+++ b/" + "n" * 300 + "\n@@ -0,0 +1 @@\n+x\n", "bad_path"),
}  # fmt: skip


@pytest.mark.req("TL-5")
@pytest.mark.parametrize(("broken", "code"), BROKEN.values(), ids=BROKEN.keys())
async def test_one_failing_file_leaves_all_unchanged(harness, broken, code):
    write_all_kinds(harness)
    if code is None:
        harness.put("run.sh", b"echo\nmore\n")
    harness.put("image", b"\x89PNG\r\n\x1a\n\0\0\0")
    harness.put("folder/x", b"x\n")
    harness.put("latin", "Größe für schöne Käufer\n".encode("cp1252"))
    (harness.folder / "link").symlink_to("run.sh")
    before, folders = harness.tree(), harness.folders()
    result = await harness.patch(ALL_KINDS + broken)
    assert (result.status, result.fault.code) == ("failed", code or "rejected"), result.for_model
    assert (harness.tree(), harness.folders()) == (before, folders)


@pytest.mark.req("TL-5")
@pytest.mark.parametrize("failing", range(1, 7))
@pytest.mark.invariant("W5")
async def test_failure_during_writing_is_rolled_back(harness, monkeypatch, failing):
    """If any step fails, contents, modes, names and folders are unchanged."""
    write_all_kinds(harness)
    (harness.folder / "old.txt").chmod(0o640)
    before, folders = harness.tree(), harness.folders()
    modes = {name: (harness.folder / name).stat().st_mode for name in before}
    steps = []

    def failing_apply(real):
        def apply(self):
            steps.append(self)
            if len(steps) == failing:
                raise OSError(28, "No space left on device")
            real(self)

        return apply

    for kind in (change_steps.CreateStep, change_steps.UpdateStep, change_steps.DeleteStep):
        monkeypatch.setattr(kind, "apply", failing_apply(kind.apply))
    result = await harness.patch(ALL_KINDS)
    assert (result.status, result.fault.code) == ("failed", "io_error")
    assert (harness.tree(), harness.folders()) == (before, folders)
    assert {name: (harness.folder / name).stat().st_mode for name in before} == modes
    monkeypatch.undo()
    assert (await harness.patch(ALL_KINDS)).status == "ok"


@pytest.mark.req("TL-5")
async def test_dry_run_changes_nothing_and_needs_only_read(harness):
    write_all_kinds(harness)
    before = harness.tree()
    result = await harness.patch(ALL_KINDS, dry_run=True)
    assert (result.status, result.data["dry_run"], result.data["applied"]) == ("ok", True, 6)
    assert result.for_model.startswith("Dry run: the patch applies")
    assert harness.tree() == before
    assert {key for key, _ in await harness.needs(ALL_KINDS, dry_run=True)} == {"read"}


@pytest.mark.req("FS-7", "PM-1")
async def test_delete_and_rename_need_the_delete_permission(harness):
    write_all_kinds(harness)
    assert await harness.needs(ALL_KINDS) == [
        ("patch", "changed.txt"),
        ("patch", "new/made.sh"),
        ("patch", "gone.txt"),
        ("delete", "gone.txt"),
        ("patch", "old.txt"),
        ("delete", "old.txt"),
        ("patch", "deep/er/new.txt"),
        ("read", "old.txt"),
        ("patch", "copy.txt"),
        ("read", "source.txt"),
        ("patch", "run.sh"),
        *(("read", name) for name in ("changed.txt", "gone.txt", "old.txt", "source.txt", "run.sh")),
    ]


@pytest.mark.req("FS-7")
@pytest.mark.parametrize(
    "patch",
    [
        begin("*** Delete File: gone.txt\n"),
        begin("*** Update File: gone.txt\n*** Move to: kept.txt\n"),
        "--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n",
        "diff --git a/gone.txt b/kept.txt\nrename from gone.txt\nrename to kept.txt\n",
    ],
)
async def test_denied_delete_removes_nothing(make_harness, patch):
    harness = await make_harness(Policy(rules=(Rule("*", "*", "allow", "test"), Rule("delete", "*", "deny", "test"))))
    harness.put("gone.txt", b"bye\n")
    assert (await harness.patch(patch)).status == "denied"
    assert harness.tree() == {"gone.txt": b"bye\n"}


@pytest.mark.req("FS-2", "FS-3")
@pytest.mark.parametrize(
    "patch",
    [
        "--- a/../out.txt\n+++ b/../out.txt\n@@ -1 +1 @@\n-SECRET\n+x\n",
        "--- /dev/null\n+++ b/../made.txt\n@@ -0,0 +1 @@\n+x\n",
        "--- ../out.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-SECRET\n",
        "diff --git a/in.txt b/../moved.txt\nrename from in.txt\nrename to ../moved.txt\n",
        "diff --git a/../out.txt b/in2.txt\ncopy from ../out.txt\ncopy to in2.txt\n",
        begin("*** Update File: link/out.txt\n-SECRET\n+x\n"),
        begin("*** Delete File: ../out.txt\n"),
        begin("*** Update File: in.txt\n*** Move to: link/in.txt\n"),
        begin("*** Add File: /tmp/somewhere/else.txt\n+x\n"),
        begin("*** Delete File: ../there-is-no-such-file\n"),
    ],
)
async def test_nothing_outside_is_touched_or_shown(harness, patch):
    outside = harness.folder.parent / "out.txt"
    outside.write_text("SECRET\n")
    (harness.folder / "link").symlink_to(harness.folder.parent)
    harness.put("in.txt", b"in\n")
    siblings = sorted(os.listdir(harness.folder.parent))
    result = await harness.patch(patch)
    assert result.status == "denied", result.for_model
    assert "SECRET" not in result.for_model
    assert outside.read_text() == "SECRET\n"
    assert sorted(os.listdir(harness.folder.parent)) == siblings
    assert (harness.folder / "in.txt").read_bytes() == b"in\n"


@pytest.mark.req("PM-5")
async def test_preview_has_a_diff_of_each_file(harness):
    write_all_kinds(harness)
    tool = PatchTool()
    permission = await tool.permission(tool.parse({"patch": ALL_KINDS}), harness.workspace)
    assert permission.title == "patch changed.txt, new/made.sh, gone.txt and 5 more"
    assert permission.preview.summary == "6 files (+5 -3)"
    assert [(shown.path, shown.operation, shown.additions, shown.deletions) for shown in permission.preview.blocks] == [
        ("changed.txt", "updated", 2, 1),
        ("new/made.sh", "created", 1, 0),
        ("gone.txt", "deleted", 0, 1),
        ("deep/er/new.txt", "renamed", 1, 1),
        ("copy.txt", "created", 1, 0),
        ("run.sh", "updated", 0, 0),
    ]


@pytest.mark.req("TL-5")
async def test_rejection_names_file_hunk_line_and_closest_match(harness):
    harness.put("src/f.py", b"def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    hunks = "@@ -1 +1 @@\n-def f():\n+def h():\n@@ -5,2 +5,2 @@\n def g():\n-    return 3\n+    x\n"
    result = await harness.patch(f"--- a/src/f.py\n+++ b/src/f.py\n{hunks}")
    assert result.fault.code == "rejected"
    for part in (
        "src/f.py: hunk 2 of 2",
        "lines 5-6",
        "line 6 has '    return 2'",
        "'    return 3'",
        "nothing was changed",
    ):
        assert part in result.for_model


@pytest.mark.req("TL-5")
async def test_rejections_of_several_files_are_reported_together(harness):
    harness.put("a", b"first file\n")
    harness.put("b", b"second file\n")
    wrong = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-{1} flie\n+x\n"
    result = await harness.patch(wrong.format("a", "first") + wrong.format("b", "second"))
    assert "a: its hunk" in result.for_model
    assert "b: its hunk" in result.for_model


@pytest.mark.req("PM-1", "TL-5")
async def test_rejection_shows_only_readable_files(make_harness):
    harness = await make_harness(Policy(rules=(Rule("*", "*", "allow", "test"), Rule("read", "*.env", "deny", "test"))))
    harness.put("x.env", b"PASSWORD=hunter2\n")
    result = await harness.patch("--- a/x.env\n+++ b/x.env\n@@ -1 +1 @@\n-PASSWORD=hunter3\n+x\n")
    assert (result.status, "hunter2" in result.for_model) == ("denied", False)
    copied = await harness.patch("diff --git a/x.env b/y.txt\ncopy from x.env\ncopy to y.txt\n")
    moved = await harness.patch("diff --git a/x.env b/y.txt\nrename from x.env\nrename to y.txt\n")
    assert (copied.status, moved.status, sorted(harness.tree())) == ("denied", "denied", ["x.env"])


@pytest.mark.req("PM-1")
async def test_patch_that_cannot_apply_needs_no_approval(make_harness):
    harness = await make_harness(Policy(rules=(Rule("*", "*", "ask", "test"), Rule("read", "*", "allow", "test"))))
    harness.put("a", b"a\n")
    result = await harness.patch("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-zzz\n+x\n")
    assert (result.status, result.fault.code) == ("failed", "rejected")
    assert not [event for event in harness.session.events() if isinstance(event, PermissionAsked)]


@pytest.mark.req("FS-6")
@pytest.mark.parametrize(
    "patch",
    [
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n",
        begin("*** Delete File: a\n"),
        begin("*** Update File: a\n*** Move to: b\n"),
    ],
)
async def test_file_changed_since_it_was_read_is_not_patched(harness, patch):
    harness.put("a", b"one\ntwo\n")
    await harness.call("read", path="a")
    harness.put("a", b"one\nBY A USER\n")
    result = await harness.patch(patch)
    assert (result.status, result.fault.code) == ("failed", "changed_on_disk")
    assert "+BY A USER" in result.for_model
    assert harness.tree() == {"a": b"one\nBY A USER\n"}


@pytest.mark.req("FS-6")
async def test_only_the_approved_change_is_written(make_harness):
    harness = await make_harness(Policy(rules=(Rule("*", "*", "ask", "test"),)))
    harness.put("a", b"one\ntwo\n")
    harness.put("b", b"one\n")
    subscription = harness.session.subscribe()

    async def answer():
        async for envelope in subscription:
            if isinstance(envelope.event, PermissionAsked):
                harness.put("b", b"BY A USER\none\n")
                harness.session.answer(envelope.event.ask_id, Decision("allow", by="person"))

    answer_task = asyncio.ensure_future(answer())
    result = await harness.patch("".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-one\n+1\n" for name in "ab"))
    answer_task.cancel()
    assert (result.status, result.fault.code) == ("failed", "changed_on_disk")
    assert harness.tree() == {"a": b"one\ntwo\n", "b": b"BY A USER\none\n"}


@pytest.mark.req("FS-6")
async def test_change_between_check_and_write_is_not_overwritten(harness, monkeypatch):
    harness.put("a", b"one\n")
    harness.put("b", b"one\n")
    real = change_steps.UpdateStep.apply

    def apply(self):
        if self.resolved.target.display_path == "b":
            harness.put("b", b"BY A USER\n")
        real(self)

    monkeypatch.setattr(change_steps.UpdateStep, "apply", apply)
    patch_text = "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-one\n+1\n" for name in "ab")
    result = await harness.patch(patch_text)
    assert (result.status, result.fault.code) == ("failed", "changed_on_disk")
    assert harness.tree() == {"a": b"one\n", "b": b"BY A USER\n"}


SEQUENCES = {
    "a file changed twice": (
        {"a": b"1\n2\n3\n"},
        begin("*** Update File: a\n-1\n+one\n*** Update File: a\n-3\n+three\n"),
        {"a": b"one\n2\nthree\n"},
    ),
    "created, then changed": ({}, begin("*** Add File: a\n+1\n*** Update File: a\n-1\n+2\n"), {"a": b"2\n"}),
    "created, then deleted": (
        {"b": b"x\n"},
        begin("*** Add File: a\n+1\n*** Delete File: a\n*** Delete File: b\n"),
        {},
    ),
    "deleted, then created": ({"a": b"1\n"}, begin("*** Delete File: a\n*** Add File: a\n+2\n"), {"a": b"2\n"}),
    "renamed, then changed": (
        {"a": b"1\n"},
        begin("*** Update File: a\n*** Move to: b\n*** Update File: b\n-1\n+2\n"),
        {"b": b"2\n"},
    ),
    "renamed, then created again": (
        {"a": b"1\n"},
        begin("*** Update File: a\n*** Move to: b\n*** Add File: a\n+new\n"),
        {"a": b"new\n", "b": b"1\n"},
    ),
    "renamed onto a deleted one": (
        {"a": b"1\n", "b": b"2\n"},
        begin("*** Delete File: b\n*** Update File: a\n*** Move to: b\n"),
        {"b": b"1\n"},
    ),
    "moved to itself": ({"a": b"1\n"}, begin("*** Update File: a\n*** Move to: a\n-1\n+2\n"), {"a": b"2\n"}),
    "a binary file renamed": (
        {"a": b"\0\1\2"},
        "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n",
        {"b": b"\0\1\2"},
    ),
    "a binary file deleted": ({"a": b"\0\1\2"}, begin("*** Delete File: a\n"), {}),
    "a legacy file copied": (
        {"a": "Größe für schöne Käufer\r\n".encode("cp1252")},
        "diff --git a/a b/b\ncopy from a\ncopy to b\n",
        {"a": "Größe für schöne Käufer\r\n".encode("cp1252"), "b": "Größe für schöne Käufer\r\n".encode("cp1252")},
    ),
    "a new file without /dev/null": ({}, "--- a/n\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", {"n": b"x\n"}),
    "a new file with CRLF": ({}, "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\r\n+y\r\n", {"n": b"x\r\ny\r\n"}),
    "a new file without a final newline": (
        {},
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n",
        {"n": b"x"},
    ),
    "a new empty file": ({}, "diff --git a/n b/n\nnew file mode 100644\nindex 0000000..e69de29\n", {"n": b""}),
    "an empty file deleted": ({"n": b""}, "diff --git a/n b/n\ndeleted file mode 100644\n", {}),
    "a folder called a": ({"a/x": b"1\n"}, "--- a/x\n+++ a/x\n@@ -1 +1 @@\n-1\n+2\n", {"a/x": b"2\n"}),
    "a missing prefix": ({"x": b"1\n"}, "--- a/x\n+++ a/x\n@@ -1 +1 @@\n-1\n+2\n", {"x": b"2\n"}),
    "a backup named before": ({"x": b"1\n"}, "--- x.orig\n+++ x\n@@ -1 +1 @@\n-1\n+2\n", {"x": b"2\n"}),
    "CRLF to LF": (
        {"x": b"1\r\n2\r\n"},
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-1\r\n-2\r\n+1\n+2\n",
        {"x": b"1\n2\n"},
    ),
    "a byte order mark": (
        {"x": b"\xef\xbb\xbf1\n2\n"},
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n",
        {"x": b"\xef\xbb\xbfone\n2\n"},
    ),
    "a quoted name": ({"t\tb": b"1\n"}, '--- "a/t\\tb"\n+++ "b/t\\tb"\n@@ -1 +1 @@\n-1\n+2\n', {"t\tb": b"2\n"}),
}


@pytest.mark.req("TL-5")
@pytest.mark.parametrize(("before", "patch", "after"), SEQUENCES.values(), ids=SEQUENCES.keys())
async def test_sequences(harness, before, patch, after):
    for name, data in before.items():
        harness.put(name, data)
    result = await harness.patch(patch)
    assert result.status == "ok", result.for_model
    assert harness.tree() == after


@pytest.mark.req("TL-5")
@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ("", "bad_patch", "empty"),
        ("--- a/a\n+++ b/b2\n@@ -1 +1 @@\n-1\n+2\n", "bad_patch", "rename from"),
        (begin("*** Delete File: a\n*** Update File: a\n-1\n+2\n"), "not_found", "removes it"),
        (begin("*** Add File: a\n+1\n"), "already_exists", "already exists"),
        (begin("*** Update File: a\n-1\n+1\n"), "bad_patch", "changes nothing"),
        ("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\nGIT binary patch\n", "bad_patch", "binary"),
    ],
)
async def test_invalid_patches(harness, patch, code, message):
    harness.put("a", b"1\n")
    result = await harness.patch(patch)
    assert (result.status, result.fault.code) == ("failed", code)
    assert message in result.for_model
    assert harness.tree() == {"a": b"1\n"}


@pytest.mark.req("TL-5")
async def test_patched_file_does_not_need_to_be_read(harness):
    harness.put("a", b"1\n")
    await harness.patch(begin("*** Update File: a\n-1\n+2\n*** Add File: b\n+1\n"))
    for name, text in (("a", "3\n"), ("b", "2\n")):
        assert (await harness.workspace.write_text(name, text)).operation == "updated"
    harness.put("a", b"BY A USER\n")
    with pytest.raises(PathError):
        await harness.workspace.write_text("a", "4\n")


def large() -> tuple[str, list[str]]:
    lines = [f"    line number {n} of a large file, with text {n * 7}\n" for n in range(100_000)]
    return "".join(lines), lines


@pytest.mark.slow
@pytest.mark.req("TL-5")
@pytest.mark.parametrize("start", ["right", "wrong"])
async def test_many_hunks_in_a_large_file_are_fast(harness, start):
    text, lines = large()
    harness.put("f", text.encode())
    hunks = []
    for n in range(1000, 99_000, 500):
        number = n if start == "right" else 1
        hunks.append(f"@@ -{number},3 +{number},3 @@\n {lines[n - 1]}-{lines[n]}+changed\n {lines[n + 1]}")
    started = time.process_time()
    result = await harness.patch("--- a/f\n+++ b/f\n" + "".join(hunks))
    assert time.process_time() - started < 10  # a bound against quadratic cost; it takes well under a second
    assert (result.status, result.data["files"][0]["additions"]) == ("ok", len(hunks))
    assert len(result.for_model.splitlines()) <= 25
    assert harness.tree()["f"].decode() == "".join(
        "changed\n" if n % 500 == 0 and 1000 <= n < 99_000 else line for n, line in enumerate(lines)
    )


def _many_hunks(line, count=1000):
    hunks = "".join(f"@@ -{n},1 +{n},1 @@\n-{line(n)}\n+x\n" for n in range(1, count + 1))
    return f"--- a/big.txt\n+++ b/big.txt\n{hunks}"


def _many_files(line, count=1000):
    return "".join(f"--- a/big.txt\n+++ b/big.txt\n@@ -{n},1 +{n},1 @@\n-{line(n)}\n+x\n" for n in range(1, count))


@pytest.mark.req("TL-1")
@pytest.mark.parametrize("make", [_many_hunks, _many_files])
@pytest.mark.parametrize(
    "line",
    [
        lambda n: f"there is no line like {n}",  # fits nowhere
        lambda n: f"the line {5000 - n} of this file, which has many",  # fits far away, before the one before it
        lambda n: f"    the line {2 * n + 500} of this file, which has many ",  # fits only without its blanks
        lambda n: "the same",  # fits everywhere
    ],
    ids=["nowhere", "backwards", "blanks", "everywhere"],
)
@pytest.mark.sampled
async def test_a_patch_with_many_hunks_does_not_block(harness, make, line):
    same = "the same\n" * 200
    lines = "".join(f"the line {n} of this file, which has many\n" for n in range(5000))
    harness.put("big.txt", (lines + same).encode())
    started = time.process_time()
    task = asyncio.ensure_future(harness.patch(make(line)))
    longest, last = 0.0, time.thread_time()
    while not task.done():
        await asyncio.sleep(0)
        longest, last = max(longest, time.thread_time() - last), time.thread_time()
    await task
    assert time.process_time() - started < 10
    assert longest < 2


@pytest.mark.req("TL-1")
async def test_a_patch_stops_at_the_first_hunk_that_fits_nowhere(harness):
    harness.put("a.txt", b"one\ntwo\nthree\n")
    hunks = "".join(f"@@ -{n},1 +{n},1 @@\n-{text}\n+x\n" for n, text in enumerate(["one", "zzz", "yyy"], 1))
    result = await harness.patch(f"--- a/a.txt\n+++ b/a.txt\n{hunks}")
    assert result.status == "failed"
    told = result.for_model
    assert "hunk 2 of 3" in told
    assert "hunk 3" not in told
    assert "not checked: 1" in told
