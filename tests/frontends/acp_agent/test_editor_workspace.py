"""The editor's files and terminals are used only if the editor offers them."""

import asyncio
import json

import pytest

from ostler.testing.model_server import calls, text
from ostler.wire.jsonrpc import RpcError

FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
TERMINAL = {"terminal": True}
EDIT = calls([("edit", {"path": "a.txt", "old": "two", "new": "2"})])


class Buffers:
    """The open buffers of the editor, which saves what the agent writes."""

    def __init__(self, editor, **texts):
        self.editor = editor
        self.texts = {str(editor.folder / name.replace("_", ".")): text for name, text in texts.items()}
        editor.answers["fs/read_text_file"] = self.read
        editor.answers["fs/write_text_file"] = self.write
        editor.choosing("once")

    async def read(self, params):
        path = params["path"]
        with open(path, encoding="utf-8", newline="") as file:
            return {"content": self.texts.get(path, file.read())}

    async def write(self, params):
        self.texts.pop(params["path"], None)
        with open(params["path"], "w", encoding="utf-8", newline="") as file:
            file.write(params["content"])
        return {}

    def asked(self, method):
        return [params for name, params in self.editor.asked if name == method]


@pytest.mark.req("AC-6")
async def test_model_reads_unsaved_text(editor_at):
    async with editor_at(calls([("read", {"path": "a.txt"})]), text("Done.")) as (editor, server):
        (editor.folder / "a.txt").write_text("saved\n")
        buffers = Buffers(editor, a_txt="unsaved\n")
        session = await editor.opened(FILES)
        await editor.prompt(session, "look")
        message = str(server.requests[-1].json["messages"][-1])
        assert ("unsaved" in message, "\\nsaved" in message) == (True, False)
        assert buffers.asked("fs/read_text_file")[0] == {"sessionId": session, "path": str(editor.folder / "a.txt")}


@pytest.mark.req("AC-6")
async def test_edit_changes_the_unsaved_text_in_the_editor(editor_at):
    async with editor_at(EDIT, text("Done.")) as (editor, _):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        buffers = Buffers(editor, a_txt="one, unsaved\ntwo\n")
        await editor.prompt(await editor.opened(FILES), "change it")
        (written,) = buffers.asked("fs/write_text_file")
        assert written["content"] == "one, unsaved\n2\n"
        (shown,) = buffers.asked("session/request_permission")[0]["toolCall"]["content"]
        assert (shown["oldText"], shown["newText"]) == ("one, unsaved\ntwo\n", "one, unsaved\n2\n")
        assert (editor.folder / "a.txt").read_text() == "one, unsaved\n2\n"


async def test_two_consecutive_edits_of_unsaved_text(editor_at):
    again = calls([("edit", {"path": "a.txt", "old": "one", "new": "1"})])
    async with editor_at(EDIT, again, text("Done.")) as (editor, _):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        buffers = Buffers(editor, a_txt="one\ntwo\nthree\n")
        await editor.prompt(await editor.opened(FILES), "change it")
        assert len(buffers.asked("fs/write_text_file")) == 1
        assert (editor.folder / "a.txt").read_text() == "1\n2\nthree\n"


async def test_saved_and_new_files_are_written_to_disk(editor_at):
    new = calls([("write", {"path": "new.txt", "content": "x\n"})])
    async with editor_at(EDIT, new, text("Done.")) as (editor, _):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        buffers = Buffers(editor)
        await editor.prompt(await editor.opened(FILES), "change it")
        assert not buffers.asked("fs/write_text_file")
        assert ((editor.folder / "a.txt").read_text(), (editor.folder / "new.txt").read_text()) == ("one\n2\n", "x\n")


async def test_buffer_that_is_not_reloaded_yet_does_not_revert_an_edit(editor_at):
    again = calls([("edit", {"path": "a.txt", "old": "one", "new": "1"})])
    async with editor_at(EDIT, again, text("Done.")) as (editor, _):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        buffers = Buffers(editor, a_txt="one\ntwo\n")  # does not change when the file does
        await editor.prompt(await editor.opened(FILES), "change it")
        assert not buffers.asked("fs/write_text_file")
        assert (editor.folder / "a.txt").read_text() == "1\n2\n"


@pytest.mark.parametrize("buffer", ["one\ntwo\n", "one\ntwo\nunsaved\n"])
async def test_newlines_are_kept(editor_at, buffer):
    look, change = calls([("read", {"path": "a.txt"})]), calls([("write", {"path": "a.txt", "content": "1\n2\n"})])
    async with editor_at(look, change, text("Done.")) as (editor, _):
        (editor.folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
        Buffers(editor, a_txt=buffer)  # editors show \n
        await editor.prompt(await editor.opened(FILES), "change it")
        assert (editor.folder / "a.txt").read_bytes() == b"1\r\n2\r\n"


async def test_rejected_write_is_a_failed_call(editor_at):
    async with editor_at(EDIT, text("I see.")) as (editor, server):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        buffers = Buffers(editor, a_txt="one\ntwo\nunsaved\n")
        del editor.answers["fs/write_text_file"]
        await editor.prompt(await editor.opened(FILES), "change it")
        assert len(buffers.asked("fs/write_text_file")) == 1
        assert "the editor did not write it" in str(server.requests[-1].json["messages"][-1])
        assert (editor.folder / "a.txt").read_text() == "one\ntwo\n"


async def test_file_is_read_from_disk_if_the_editor_cannot_read_it(editor_at):
    async with editor_at(calls([("read", {"path": "a.txt"})]), text("Done.")) as (editor, server):
        (editor.folder / "a.txt").write_text("saved\n")
        await editor.prompt(await editor.opened(FILES), "look")
        assert [method for method, _ in editor.asked] == ["fs/read_text_file"]
        assert "saved" in str(server.requests[-1].json["messages"][-1])


async def test_file_is_read_from_disk_if_the_editor_hangs(editor_at, monkeypatch):
    monkeypatch.setattr("ostler.frontends.acp_agent.editor_workspace.READ_TIMEOUT", 0.01)
    async with editor_at(calls([("read", {"path": "a.txt"})]), text("Done.")) as (editor, server):
        (editor.folder / "a.txt").write_text("saved\n")

        async def never(params):
            await asyncio.Event().wait()

        editor.answers["fs/read_text_file"] = never
        await editor.prompt(await editor.opened(FILES), "look")
        assert "saved" in str(server.requests[-1].json["messages"][-1])


async def test_text_changed_since_it_was_read_is_not_overwritten(editor_at):
    look = calls([("read", {"path": "a.txt"})])
    async with editor_at(look, text("Seen."), EDIT, text("I see.")) as (editor, server):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        buffers = Buffers(editor)
        session = await editor.opened(FILES)
        await editor.prompt(session, "look")
        buffers.texts[str(editor.folder / "a.txt")] = "one\ntwo\nthree, typed meanwhile\n"
        await editor.prompt(session, "change it")
        assert "changed in the editor since you read it" in str(server.requests[-1].json["messages"][-1])
        assert not buffers.asked("fs/write_text_file")


async def test_patch_of_several_files_needs_saved_files(editor_at):
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: b.txt\n@@\n-two\n+2\n*** End Patch"
    call = calls([("patch", {"patch": patch})])
    async with editor_at(call, text("Done."), call, text("Done.")) as (editor, server):
        for name, content in (("a.txt", "one\n"), ("b.txt", "two\n")):
            (editor.folder / name).write_text(content)
        buffers = Buffers(editor, b_txt="two\nunsaved\n")
        session = await editor.opened(FILES)
        await editor.prompt(session, "patch")
        assert "unsaved changes in the editor" in str(server.requests[-1].json["messages"][-1])
        assert (editor.folder / "a.txt").read_text() == "one\n"
        buffers.texts.clear()
        await editor.prompt(session, "again")
        assert ((editor.folder / "a.txt").read_text(), (editor.folder / "b.txt").read_text()) == ("1\n", "2\n")
        assert not buffers.asked("fs/write_text_file")


BACKGROUND = calls([("bash", {"command": "sleep 600", "background": True})])


@pytest.mark.req("FS-2")
async def test_editor_is_not_used_while_a_command_runs(editor_at):
    look, stop = calls([("read", {"path": "a.txt"})]), calls([("bash", {"action": "stop", "job": "bg1"})])
    async with editor_at(look, BACKGROUND, look, EDIT, stop, look, EDIT, text("Done.")) as (editor, server):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        buffers = Buffers(editor, a_txt="one\ntwo\nunsaved\n")
        await editor.prompt(await editor.opened(FILES), "change it")
        results = [str(request.json["messages"][-1]) for request in server.requests[1:]]
        assert ["unsaved" in results[0], "unsaved" in results[2], "unsaved" in results[5]] == [True, False, True]
        assert "unsaved changes in the editor, which is not used while a command runs" in results[3]
        assert [params["content"] for params in buffers.asked("fs/write_text_file")] == ["one\n2\nunsaved\n"]


@pytest.mark.req("FS-2")
async def test_write_stays_in_the_workspace_while_a_job_replaces_its_folder_with_a_link(editor_at):
    flip = "ln -s ../outside link; while :; do mv safe real; mv link safe; mv safe link; mv real safe; done"
    start = calls([("bash", {"command": flip, "background": True})])
    writes = [calls([("write", {"path": f"safe/c{number}", "content": "x"})]) for number in range(30)]
    async with editor_at(start, *writes, text("Done.")) as (editor, _):
        outside = editor.folder.parent / "outside"
        outside.mkdir()
        (editor.folder / "safe").mkdir()
        Buffers(editor)
        await editor.prompt(await editor.opened(FILES), "go")
        assert [path.name for path in outside.iterdir()] == []


class Terminals:
    """Terminals with a given output and exit code."""

    def __init__(self, editor, output="hi\n", code=0, *, ends=True):
        self.editor = editor
        self.made = []
        self._output, self._code, self._ends = output, code, ends
        self.killed = asyncio.Event()
        for name in ("create", "output", "wait_for_exit", "kill", "release"):
            editor.answers[f"terminal/{name}"] = getattr(self, name)
        editor.choosing("once")

    async def create(self, params):
        self.made.append(params)
        return {"terminalId": f"term-{len(self.made)}"}

    async def wait_for_exit(self, params):
        if not self._ends:
            await self.killed.wait()
            return {"exitCode": None, "signal": "SIGKILL"}
        return {"exitCode": self._code}

    async def output(self, params):
        ended = {"signal": "SIGKILL"} if self.killed.is_set() else {"exitCode": self._code}
        return {"output": self._output, "truncated": False, "exitStatus": ended}

    async def kill(self, params):
        self.killed.set()
        return {}

    async def release(self, params):
        return {}

    def used(self):
        return [method.removeprefix("terminal/") for method, _ in self.editor.asked if method.startswith("terminal/")]


@pytest.mark.req("AC-6")
async def test_command_runs_in_a_terminal_of_the_editor(editor_at):
    async with editor_at(calls([("bash", {"command": "make it", "write": True})]), text("Made.")) as (editor, server):
        terminals = Terminals(editor)
        await editor.prompt(await editor.opened(TERMINAL), "go")
        (made,) = terminals.made
        assert (made["args"], made["cwd"]) == (["-c", "make it"], str(editor.folder))
        assert terminals.used() == ["create", "wait_for_exit", "output", "release"]
        (started,) = editor.updates_of("tool_call")
        call = editor.call(started["toolCallId"])
        assert (call["status"], call["content"]) == ("completed", [{"type": "terminal", "terminalId": "term-1"}])
        assert "hi" in str(server.requests[-1].json["messages"][-1])


@pytest.mark.req("PM-1", "PM-5")
@pytest.mark.parametrize(
    "command",
    ["cat > evil.py <<'EOF'\nx\nEOF", "ls > x", "cat a >> Makefile", "cat /proc/$PPID/environ"],
)
async def test_command_that_writes_or_leaves_the_workspace_asks_before_it_runs_in_a_terminal(editor_at, command):
    async with editor_at(calls([("bash", {"command": command})]), text("Oh.")) as (editor, _):
        terminals = Terminals(editor)
        editor.choosing("deny")
        await editor.prompt(await editor.opened(TERMINAL), "go")
        assert [method for method, _ in editor.asked] == ["session/request_permission"]
        assert terminals.made == []


MAKEFILE = "out:\n\techo built > out\ncheck:\n\t@echo checked\n"


@pytest.mark.req("PM-11", "SH-8")
@pytest.mark.invariant("P15")
@pytest.mark.parametrize("command", ["make check", "ls > $TMPDIR/x; echo checked"])
async def test_command_that_does_not_write_runs_in_the_sandbox_without_asking(editor_at, command):
    async with editor_at(calls([("bash", {"command": command})]), text("Checked.")) as (editor, server):
        (editor.folder / "Makefile").write_text(MAKEFILE)
        terminals = Terminals(editor)
        await editor.prompt(await editor.opened(TERMINAL), "go")
        assert (editor.asked, terminals.made) == ([], [])
        assert "checked" in str(server.requests[-1].json["messages"][-1])


@pytest.mark.req("PM-11", "SH-8")
@pytest.mark.invariant("P15")
@pytest.mark.parametrize("answer", ["once", "deny"])
async def test_command_that_must_write_is_asked_about_and_runs_again_in_a_terminal(editor_at, answer):
    async with editor_at(calls([("bash", {"command": "make"})]), text("Made.")) as (editor, server):
        (editor.folder / "Makefile").write_text(MAKEFILE)
        terminals = Terminals(editor)
        editor.choosing(answer)
        await editor.prompt(await editor.opened(TERMINAL), "go")
        assert editor.asked[0][0] == "session/request_permission" and not (editor.folder / "out").exists()
        assert len(terminals.made) == (answer == "once")
        result = str(server.requests[-1].json["messages"][-1])
        assert "hi" in result if answer == "once" else "ead-only" in result


@pytest.mark.req("PM-11")
@pytest.mark.parametrize(
    "config",
    [
        {"permission": {"bash": {"make *": "ask"}}},
        {"security": {"profile": "paranoid"}},
        {"security": {"sandbox": "off"}},
    ],
)
async def test_choices_of_the_user_ask_before_anything_runs(editor_at, config):
    async with editor_at(calls([("bash", {"command": "make check"})]), text("No.")) as (editor, _):
        home = editor.folder.parent / "home" / ".ostler"
        home.mkdir(exist_ok=True)
        (home / "config.json").write_text(json.dumps(config))
        (editor.folder / "Makefile").write_text(MAKEFILE)
        terminals = Terminals(editor)
        editor.choosing("deny")
        await editor.prompt(await editor.opened(TERMINAL), "go")
        assert ([method for method, _ in editor.asked], terminals.made) == (["session/request_permission"], [])


@pytest.mark.req("PM-1", "SH-8")
async def test_rules_for_outside_folders_hold_in_editors(editor_at, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "note").write_text("text of the note")
    both = calls([("read", {"path": str(outside / "note")})])
    async with editor_at(both, text("Read.")) as (editor, server):
        home = editor.folder.parent / "home" / ".ostler"
        home.mkdir(exist_ok=True)
        rule = {"permission": {"external_directory": {f"{outside}/*": "allow"}}}
        (home / "config.json").write_text(json.dumps(rule))
        await editor.prompt(await editor.opened(TERMINAL), "read it")
        assert "text of the note" in str(server.requests[-1].json["messages"][-1])


@pytest.mark.req("SH-8")
async def test_terminal_gets_no_secrets_of_the_environment(editor_at, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-12345678901234567890")
    monkeypatch.setenv("BASH_ENV", "/tmp/x")
    async with editor_at(calls([("bash", {"command": "ls"})]), text("Seen.")) as (editor, _):
        terminals = Terminals(editor)
        await editor.prompt(await editor.opened(TERMINAL), "go")
        variables = {item["name"]: item["value"] for item in terminals.made[0]["env"]}
        assert (variables["SOME_API_KEY"], variables["BASH_ENV"]) == ("", "")
        assert "PATH" not in variables


@pytest.mark.parametrize(
    ("method", "response"), [("output", {"output": "hi\n", "truncated": False}), ("wait_for_exit", {})]
)
async def test_exit_status_may_be_in_either_response(editor_at, method, response):
    async with editor_at(calls([("bash", {"command": "make it", "write": True})]), text("Made.")) as (editor, _):
        terminals = Terminals(editor)

        async def answer(params):
            return response

        editor.answers[f"terminal/{method}"] = answer
        await editor.prompt(await editor.opened(TERMINAL), "go")
        (started,) = editor.updates_of("tool_call")
        assert editor.call(started["toolCallId"])["status"] == "completed"
        assert terminals.used()[-1] == "release"


@pytest.mark.req("SH-2")
@pytest.mark.parametrize("broken", ["wait_for_exit", "output"])
async def test_failing_terminal_is_killed_and_released(editor_at, broken):
    async with editor_at(calls([("bash", {"command": "make it", "write": True})]), text("Oh.")) as (editor, server):
        terminals = Terminals(editor)

        async def fail(params):
            raise RpcError(-32603, "lost it")

        editor.answers[f"terminal/{broken}"] = fail
        await editor.prompt(await editor.opened(TERMINAL), "go")
        assert terminals.used()[-2:] == ["kill", "release"]
        assert "lost it" in str(server.requests[-1].json["messages"][-1])


async def test_failed_command_is_a_failed_call(editor_at):
    async with editor_at(calls([("bash", {"command": "make it", "write": True})]), text("Oh.")) as (editor, server):
        Terminals(editor, "no rule\n", 2)
        await editor.prompt(await editor.opened(TERMINAL), "go")
        (started,) = editor.updates_of("tool_call")
        assert editor.call(started["toolCallId"])["status"] == "failed"
        assert "no rule" in str(server.requests[-1].json["messages"][-1])


async def test_command_is_killed_after_the_timeout(editor_at):
    async with editor_at(calls([("bash", {"command": "make it", "timeout": 0.05, "write": True})]), text("Oh.")) as (
        editor,
        _,
    ):
        terminals = Terminals(editor, ends=False)
        await editor.prompt(await editor.opened(TERMINAL), "go")
        assert terminals.used() == ["create", "wait_for_exit", "kill", "output", "release"]


@pytest.mark.req("SH-2")
async def test_cancelled_turn_kills_and_releases_its_terminal(editor_at):
    async with editor_at(calls([("bash", {"command": "make it", "write": True})])) as (editor, _):
        terminals = Terminals(editor, ends=False)
        session = await editor.opened(TERMINAL)
        turn = asyncio.ensure_future(editor.prompt(session, "go"))
        await editor.until(lambda: "wait_for_exit" in terminals.used())
        editor.peer.notify("session/cancel", {"sessionId": session})
        assert (await turn)["stopReason"] == "cancelled"
        assert terminals.used() == ["create", "wait_for_exit", "kill", "release"]


@pytest.mark.req("SH-8")
async def test_plan_agent_runs_commands_in_the_sandbox(editor_at):
    async with editor_at(calls([("bash", {"command": "ls"})]), text("Seen.")) as (editor, _):
        terminals = Terminals(editor)
        session = await editor.opened(TERMINAL)
        await editor.peer.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        await editor.prompt(session, "look")
        assert terminals.used() == []


@pytest.mark.req("SH-8")
async def test_required_sandbox_is_used_instead_of_terminals(editor_at):
    async with editor_at(calls([("bash", {"command": "ls"})]), text("Seen.")) as (editor, _):
        home = editor.folder.parent / "home" / ".ostler"
        home.mkdir(exist_ok=True)
        (home / "config.json").write_text('{"security": {"sandbox": "require"}}')
        terminals = Terminals(editor)
        await editor.prompt(await editor.opened(TERMINAL), "look")
        assert terminals.used() == []


@pytest.mark.req("AC-6")
async def test_editor_without_capabilities_gets_no_requests(editor_at):
    both = calls([("read", {"path": "a.txt"}), ("bash", {"command": "ls"})])
    async with editor_at(both, EDIT, text("Done.")) as (editor, _):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        editor.choosing("once")
        await editor.prompt(await editor.opened(), "go")
        assert {method for method, _ in editor.asked} <= {"session/request_permission"}
        assert (editor.folder / "a.txt").read_text() == "one\n2\n"


@pytest.mark.req("SH-8")
async def test_own_shell_can_be_requested(editor_at):
    async with editor_at(calls([("bash", {"command": "ls"})]), text("Seen.")) as (editor, _):
        terminals = Terminals(editor)
        editor.agent._workspaces._own_shell = True
        await editor.prompt(await editor.opened(TERMINAL), "look")
        assert terminals.used() == []


@pytest.mark.req("AC-6", "EN-4")
async def test_subagent_uses_unsaved_text(editor_at):
    task = calls([("task", {"prompt": "change it", "agent": "general", "title": "change"})])
    look = calls([("read", {"path": "a.txt"})])
    async with editor_at(task, look, EDIT, text("Changed."), text("Done.")) as (editor, server):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        buffers = Buffers(editor, a_txt="one, unsaved\ntwo\n")
        await editor.prompt(await editor.opened(FILES), "let somebody change it")
        assert "one, unsaved" in str(server.requests[2].json["messages"][-1])
        (written,) = buffers.asked("fs/write_text_file")
        assert written["content"] == "one, unsaved\n2\n"


@pytest.mark.req("AC-6", "EN-4")
async def test_subagent_may_read_additional_directories(editor_at, tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "b.txt").write_text("from beside\n")
    task = calls([("task", {"prompt": "look", "agent": "explore", "title": "look"})])
    look = calls([("read", {"path": str(tmp_path / "beside" / "b.txt")})])
    async with editor_at(task, look, text("Seen."), text("Done.")) as (editor, server):
        editor.choosing("once")
        await editor.begin()
        place = {"cwd": str(editor.folder), "mcpServers": [], "additionalDirectories": [str(tmp_path / "beside")]}
        session = (await editor.peer.request("session/new", place))["sessionId"]
        await editor.prompt(session, "let somebody look")
        assert "from beside" in str(server.requests[2].json["messages"][-1])
