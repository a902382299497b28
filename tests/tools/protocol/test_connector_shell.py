"""Shell sessions of the connector: state, input, timeouts, permissions and processes."""

import asyncio
import os
import re
import shutil

import pytest

from ostler.core.errors import ToolError
from ostler.tools.bash import BashTool
from ostler.tools.protocol.connector_shell import ConnectorShellParams, ConnectorShellTool, ShellTimeouts
from ostler.tools.protocol.shell_state import KeptShellState, make_mark, read_end
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace

pytestmark = [pytest.mark.req("AZ-7"), pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")]


class Context:
    call_id = "call"

    def __init__(self, workspace, read_only=False):
        self.workspace = workspace
        self.read_only = read_only

    def progress(self, display):
        pass


class Shells:
    """The tool in a workspace; `run` judges a call before it runs, as the tool host does."""

    def __init__(self, folder, sandbox="off"):
        self.workspace = SessionWorkspace(
            str(folder), SessionShell(str(folder), writable=True, sandbox=sandbox), read_anywhere=False
        )
        self.tool = ConnectorShellTool(BashTool())

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.workspace.aclose()

    async def judge(self, action, command="", **more):
        params = ConnectorShellParams(action, command=command, **more)
        return params, await self.tool.permission(params, self.workspace)

    async def run(self, action, command="", **more):
        params, _ = await self.judge(action, command, **more)
        async with asyncio.timeout(30):
            return await self.tool.run(params, Context(self.workspace))


QUICK = ShellTimeouts(first=0.3, between=0.3, total=20, dialog=0.2)


async def test_folder_variables_and_functions_are_kept(tmp_path):
    (tmp_path / "my sub").mkdir()
    (tmp_path / "my sub/x.txt").write_text("found\n")
    async with Shells(tmp_path) as shells:
        result = await shells.run("run", 'cd \'my sub\'; A="it\'s \\$5"; export B=two; f() { echo "f $1"; }; exit 3')
        assert (result.data["exit_code"], result.status, result.data["running"]) == (3, "failed", False)
        assert (await shells.run("run", 'cat x.txt; echo "$A"; f "$B"; env | grep ^B=')).for_model == (
            "found\nit's $5\nf two\nB=two"
        )
        await shells.run("run", "unset B; M=$'a\\nb'; L=(1 '2 3')")
        assert (await shells.run("run", 'echo "[$B] ${L[1]}"; echo "$M"')).for_model == "[] 2 3\na\nb"
        assert (await shells.run("run", "pwd", session=1)).for_model == str(tmp_path)
        assert (await shells.run("run", "pwd", reset=True)).for_model == str(tmp_path)
        assert (await shells.run("run", "echo [$A]")).for_model == "[]"


async def test_state_is_part_of_what_is_judged(tmp_path):
    async with Shells(tmp_path) as shells:
        await shells.run("run", "cd /etc; X=rm; ls() { rm -r y; }")
        _, permission = await shells.judge("run", "cat passwd; $X -r z; ls")
    subjects = [need.subject for need in permission.needs]
    assert "outside the workspace: /etc/passwd" in subjects
    assert {need.danger for need in permission.needs if need.subject in ("rm -r z", "rm -r y")} == {"confirm"}


async def test_state_that_changed_after_the_decision_is_not_used(tmp_path):
    async with Shells(tmp_path) as shells:
        params, _ = await shells.judge("run", "ls")
        await shells.run("run", "cd /")
        with pytest.raises(ToolError, match="changed before this was allowed"):
            await shells.tool.run(params, Context(shells.workspace))


async def test_input_for_a_running_program(tmp_path):
    async with Shells(tmp_path) as shells:
        result = await shells.run("run", 'read -p "name? " x; echo "hi $x"; exit 4', timeouts=QUICK)
        assert result.data["running"] and "name?" not in result.for_model  # bash prints a prompt only to a terminal
        waiting = await shells.run("run", "ls", timeouts=QUICK)
        assert waiting.data["running"] and "still runs" in waiting.data["message"]
        result = await shells.run("input", "you", timeouts=QUICK)
        assert (result.for_model, result.data["exit_code"], result.data["running"]) == ("hi you", 4, False)
        with pytest.raises(ToolError, match="not awaiting input"):
            await shells.run("input", "again")


async def test_output_is_collected_until_the_end(tmp_path):
    os.mkfifo(tmp_path / "go")
    async with Shells(tmp_path) as shells:
        result = await shells.run("run", "echo one; read x < go; echo two", timeouts=QUICK)
        assert result.data["running"] and result.for_model == "one"
        await asyncio.to_thread((tmp_path / "go").write_text, "x\n")
        result = await shells.run("output")
        assert (result.for_model, result.data["running"]) == ("one\ntwo", False)
        assert (await shells.run("output")).for_model == "one\ntwo"
        assert "no command" in (await shells.run("output", session=9)).data["message"]


async def test_question_is_reported_early(tmp_path):
    async with Shells(tmp_path) as shells:
        timeouts = ShellTimeouts(first=30, between=30, total=30, dialog=0.2)
        result = await shells.run("run", "printf 'Continue? [y/N]'; read x; echo $x", timeouts=timeouts)
        assert result.data["running"] and "waiting for input" in result.data["message"]
        assert (await shells.run("input", "y")).for_model == "y"


@pytest.mark.parametrize(
    "parts", [("rm -rf x",), ("r\\", "m -rf x"), ("X=rm", "$X -rf x"), ("if true", "then rm -r x; fi")]
)
@pytest.mark.req("SH-3")
async def test_text_for_a_shell_is_judged_like_a_command(parts, tmp_path):
    async with Shells(tmp_path) as shells:
        await shells.run("run", "bash", timeouts=QUICK)
        for part in parts[:-1]:
            await shells.run("input", part, timeouts=QUICK)
        _, permission = await shells.judge("input", parts[-1])
    assert "confirm" in {need.danger for need in permission.needs}
    assert not any(need.rule_pattern for need in permission.needs)


@pytest.mark.req("SH-7")
async def test_forbidden_patterns_hold_for_text(tmp_path):
    async with Shells(tmp_path) as shells:
        shells.tool = ConnectorShellTool(BashTool(blacklist_patterns=("frobnicate",)))
        await shells.run("run", "bash", timeouts=QUICK)
        _, permission = await shells.judge("input", "frobnicate now")
    assert "deny" in {need.danger for need in permission.needs}


async def test_text_of_a_program_that_is_not_a_shell_needs_approval(tmp_path):
    """An ordinary word can mean anything to a program, so that it is never judged by its name alone."""
    async with Shells(tmp_path) as shells:
        await shells.run("run", "cat", timeouts=QUICK)
        _, permission = await shells.judge("input", "ls")
    assert "text for a running program: ls" in [need.subject for need in permission.needs]


@pytest.mark.req("SH-2")
async def test_reset_cancel_and_close_stop_all_processes(tmp_path):
    async with Shells(tmp_path) as shells:
        result = await shells.run("run", "sleep 1000 & echo $!; disown")
        assert result.data["running"] is False  # the process in the background outlives the command
        pid = int(result.for_model)
        os.kill(pid, 0)
        await shells.run("reset")
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        running = asyncio.ensure_future(shells.run("run", "echo $$ > pid; exec sleep 1000"))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
        result = await shells.run("run", "sleep 1000 & echo $!")
    with pytest.raises(ProcessLookupError):
        os.kill(int(result.for_model), 0)


async def test_large_state_and_large_output(tmp_path):
    async with Shells(tmp_path) as shells:
        result = await shells.run("run", "X=$(head -c 30000 /dev/zero | tr '\\0' x); cd /tmp")
        assert "too large" in result.data["message"]
        assert (await shells.run("run", "echo [$X]; pwd")).for_model == "[]\n/tmp"
        result = await shells.run("run", "yes line | head -n 200000; echo done; Y=1")
        assert result.for_model.endswith("done") and len(result.for_model) < 300_000
        assert (await shells.run("run", "echo [$Y]")).for_model == "[1]"


@pytest.mark.parametrize(
    "command", ["exec echo hi", "trap 'echo bye' EXIT; echo hi", "set -eux; echo hi", "echo 'open"]
)
async def test_commands_that_end_the_shell_in_other_ways(command, tmp_path):
    async with Shells(tmp_path) as shells:
        result = await shells.run("run", command)
        assert result.data["running"] is False and "__ostler" not in result.for_model
        assert (await shells.run("run", "echo next")).for_model == "next"


async def test_folder_that_is_gone_is_reported(tmp_path):
    (tmp_path / "sub").mkdir()
    async with Shells(tmp_path) as shells:
        await shells.run("run", "cd sub")
        (tmp_path / "sub").rmdir()
        with pytest.raises(ToolError, match="no longer exists"):
            await shells.run("run", "ls")
        await shells.run("reset")
        assert (await shells.run("run", "echo ok")).for_model == "ok"


def test_incomplete_report_is_not_an_end():
    mark = make_mark()
    assert read_end(f"out\n{mark} begin\ndeclare -- X", mark) is None
    end = read_end(f"tail\n{mark} end 0\n", mark)
    assert (end.status, end.state) == (0, None)


async def test_report_of_an_earlier_command_in_the_output_does_not_end_a_command(tmp_path):
    async with Shells(tmp_path) as shells:
        script = (await shells.run("run", "trap -p EXIT; mkdir sub; cd sub")).for_model  # it prints the report
        mark = re.search(r"__ostler_[0-9a-f]+__", script)[0]
        (tmp_path / "report").write_text(
            f"\n{mark} begin\n{mark} after\n{mark} functions\n{mark} folder\n/\n{mark} end 0\n"
        )
        result = await shells.run("run", "cat ../report; read x; echo $x", timeouts=QUICK)
        assert result.data["running"] and " end " in result.for_model
        result = await shells.run("input", "over")
        assert not result.data["running"] and result.for_model.endswith("over")
        assert (await shells.run("run", "pwd")).for_model == str(tmp_path / "sub")


def test_prefix_is_empty_in_the_first_folder():
    assert KeptShellState("/w").prefix("/w") == "" and KeptShellState("/w/a b").prefix("/w") == "cd 'a b'\n"
    assert KeptShellState("/tmp").prefix("/w") == "cd /tmp\n"
