"""`ostler zero run` with the settings of a user, against a server with the connector."""

import asyncio
import json
import os
import signal
import sys

import pytest
from tests.backends.agent_zero.connector_double import ConnectorDouble
from tests.processes.conftest import MarkedProcesses


@pytest.mark.req("AZ-7", "SH-7")
@pytest.mark.parametrize("allow_shell", [False, True])
async def test_commands_of_the_connector_need_allow_shell_in_every_profile(allow_shell, tmp_path):
    home, folder = tmp_path / "home", tmp_path / "project"
    folder.mkdir()
    (home / ".ostler").mkdir(parents=True)
    security = {"profile": "god_mode", **({"allow_shell": True} if allow_shell else {})}
    (home / ".ostler" / "config.json").write_text(json.dumps({"security": security}))
    seen = []

    async def turn(server):
        for number, runtime in enumerate(("terminal", "python", "nodejs")):
            code = "touch ran" if runtime == "terminal" else "open('ran', 'w')"
            operation = {"runtime": runtime, "session": number, "code": code}
            seen.append(await server.operation("connector_exec_op", f"op{number}", **operation))
        return "done"

    async with ConnectorDouble(turn) as server:
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "AGENTZERO_API_URL": server.url}
        command = [sys.executable, "-m", "ostler", "zero", "run", "--yolo", "--cwd", str(folder), "go"]
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        output, errors = await process.communicate()
    assert (folder / "ran").exists() is allow_shell, (seen, errors)
    assert len(seen) == 3
    assert any(result["ok"] for result in seen) is allow_shell, seen
    assert server.hellos[0]["remote_exec"]["enabled"] is allow_shell
    assert (b"(security.allow_shell)" in output + errors) is allow_shell  # the warning


@pytest.mark.req("AZ-7", "SH-2")
@pytest.mark.sampled
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("sandbox", ["off", "require"])
async def test_nothing_of_a_shell_session_is_left_when_ostler_is_killed(ending, sandbox, tmp_path):
    """Neither processes in the background of an ended command, nor a running one, nor one that waits for input."""
    home, folder = tmp_path / "home", tmp_path / "project"
    folder.mkdir()
    (home / ".ostler").mkdir(parents=True)
    security = {"sandbox": sandbox, "allow_shell": True}
    (home / ".ostler" / "config.json").write_text(json.dumps({"security": security}))
    marked, up, results = MarkedProcesses(), asyncio.Event(), []
    begin = f"export OSTLER_TEST_MARK={marked.value}; "
    codes = (
        "setsid sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & disown; echo started",
        "trap '' TERM HUP; sleep 1000",
        "cat",
    )

    async def turn(server):
        quick = {"first_output_timeout": 0.3, "between_output_timeout": 0.3, "max_exec_timeout": 60}
        for number, code in enumerate(codes):
            members = {"runtime": "terminal", "session": number, "code": begin + code, "timeouts": quick}
            results.append(await server.operation("connector_exec_op", f"op{number}", **members))
        up.set()
        await asyncio.Event().wait()

    async with ConnectorDouble(turn) as server:
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "AGENTZERO_API_URL": server.url}
        command = [
            sys.executable,
            "-m",
            "ostler",
            "zero",
            "run",
            "--write",
            "--allow",
            "bash",
            "--cwd",
            str(folder),
            "go",
        ]
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await asyncio.wait_for(up.wait(), 60)
            before = marked.pids()
            process.send_signal(ending)
            await process.wait()
            all_gone = await asyncio.to_thread(marked.all_gone)
        except TimeoutError:
            raise AssertionError(results) from None
        finally:
            for pid in marked.pids():
                os.kill(pid, signal.SIGKILL)
    assert [result.get("result", result).get("running") for result in results] == [False, True, True], results
    assert len(before) >= 4, before
    assert all_gone
