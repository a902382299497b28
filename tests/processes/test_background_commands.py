"""Background commands: start, list, read, stop, and end with the session."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from ostler.core.errors import ToolError
from ostler.processes.sandbox_policy import SandboxPolicy
from ostler.processes.session_processes import SessionProcesses

pytestmark = pytest.mark.req("SH-9")


async def _read_until(processes, id, text):
    output = ""
    async with asyncio.timeout(10):
        while text not in output:
            output += (await processes.read_background(id, wait=0.02)).text
    return output


async def test_start_list_read_and_stop(processes, marked, tmp_path):
    os.mkfifo(tmp_path / "go")
    id = await processes.start_background("echo one; read x < go; echo two >&2; sleep 1000", env=marked.env)
    assert await _read_until(processes, id, "one\n") == "one\n"
    (job,) = processes.list_background()
    assert (job.id, job.state, job.exit_code) == (id, "running", None) and "echo one" in job.command
    await asyncio.to_thread((tmp_path / "go").write_text, "x\n")
    assert await _read_until(processes, id, "two\n") == "two\n"  # only new output
    assert Path(job.log).read_text() == "one\ntwo\n" and os.stat(job.log).st_mode & 0o777 == 0o600
    stopped = await processes.stop_background(id)
    assert stopped.state == "killed" and not marked.pids()
    assert (await processes.stop_background(id)).state == "killed"


async def test_end_is_reported_with_last_output(processes):
    id = await processes.start_background("echo last; exit 7")
    output = await processes.read_background(id, wait=10)
    assert (output.text, output.job.state, output.job.exit_code) == ("last\n", "exited", 7)
    assert (await processes.read_background(id)).text == ""


async def test_child_processes_belong_to_command(processes, marked, tmp_path):
    """A command that starts a server in the background is running as long as the server is."""
    id = await processes.start_background("setsid sleep 1000 & echo started", env=marked.env)
    await _read_until(processes, id, "started\n")
    assert processes.list_background()[0].state == "running" and marked.pids()
    assert (await processes.stop_background(id)).state == "killed"
    assert not marked.pids()


async def test_command_that_ignores_sigterm_is_killed(processes, marked):
    id = await processes.start_background("trap '' TERM; echo up; while :; do sleep 1000; done", env=marked.env)
    await _read_until(processes, id, "up\n")
    await processes.stop_background(id)
    assert not marked.pids()


async def test_all_commands_end_with_session(tmp_path, marked):
    processes = SessionProcesses(str(tmp_path), policy=SandboxPolicy(mode="off"), grace=0.3)
    for command in ("sleep 1000", "trap '' TERM; setsid sleep 1000 & wait", "true"):
        await processes.start_background(command, env=marked.env)
    log = processes.list_background()[0].log
    await processes.aclose()
    assert not marked.pids() and processes.list_background() == [] and not os.path.exists(log)


async def test_large_output_is_truncated_and_latest_part_is_readable(processes, tmp_path):
    id = await processes.start_background("head -c 5M /dev/zero | tr '\\0' x; echo; echo newest")
    output = await processes.read_background(id, wait=20)
    assert len(output.text) < 100_000 and output.text.endswith("newest\n") and "omitted" in output.text


async def test_number_of_running_commands_is_limited(processes, monkeypatch):
    monkeypatch.setattr(processes._background, "_max_running", 2)
    first = await processes.start_background("sleep 1000")
    await processes.start_background("sleep 1000")
    with pytest.raises(ToolError, match="2 background commands are already running"):
        await processes.start_background("true")
    await processes.stop_background(first)
    assert await processes.start_background("true")


async def test_unknown_id_lists_available_ids(processes):
    await processes.start_background("true")
    with pytest.raises(ToolError, match="available: bg1"):
        await processes.stop_background("bg9")


async def test_crash_has_shell_exit_code(processes):
    id = await processes.start_background("kill -SEGV $$")
    job = (await processes.read_background(id, wait=10)).job
    assert (job.state, job.exit_code) == ("exited", 128 + signal.SIGSEGV)


async def test_interactive_command_reads_what_is_written(processes, marked):
    id = await processes.start_background("while read x; do echo got $x; done", env=marked.env, interactive=True)
    processes.write_background(id, b"one\n")
    await _read_until(processes, id, "got one\n")
    processes.write_background(id, b"two\n")
    await _read_until(processes, id, "got two\n")
    await processes.stop_background(id)
    assert not marked.pids()
    with pytest.raises(ToolError, match="reads no input"):
        processes.write_background(id, b"three\n")


async def test_input_that_is_not_read_is_refused_instead_of_filling_the_memory(processes):
    id = await processes.start_background("sleep 1000", interactive=True)
    with pytest.raises(ToolError, match="does not read its input"):
        for _ in range(5):
            processes.write_background(id, b"x" * 500_000)


async def test_script_gets_the_command_as_its_first_argument(processes):
    id = await processes.start_background("echo 'a  b'", script='eval "$1"; echo after')
    output = await processes.read_background(id, wait=10)
    assert output.text == "a  b\nafter\n" and output.job.command == "echo 'a  b'"
