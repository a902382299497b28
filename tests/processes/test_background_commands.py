"""Background commands: started, listed, read, stopped, ended with the session."""

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
    heard = ""
    async with asyncio.timeout(10):
        while text not in heard:
            heard += (await processes.read_background(id, wait=0.02)).text
    return heard


async def test_it_is_started_listed_read_and_stopped(processes, marked, tmp_path):
    os.mkfifo(tmp_path / "go")
    id = await processes.start_background("echo one; read x < go; echo two >&2; sleep 1000", env=marked.env)
    assert await _read_until(processes, id, "one\n") == "one\n"
    (job,) = processes.list_background()
    assert (job.id, job.state, job.exit_code) == (id, "running", None) and "echo one" in job.command
    await asyncio.to_thread((tmp_path / "go").write_text, "x\n")
    assert await _read_until(processes, id, "two\n") == "two\n"  # only what is new
    assert Path(job.log).read_text() == "one\ntwo\n" and os.stat(job.log).st_mode & 0o777 == 0o600
    stopped = await processes.stop_background(id)
    assert stopped.state == "killed" and not marked.pids()
    assert (await processes.stop_background(id)).state == "killed"


async def test_an_end_is_told_with_the_last_output(processes):
    id = await processes.start_background("echo last; exit 7")
    read = await processes.read_background(id, wait=10)
    assert (read.text, read.job.state, read.job.exit_code) == ("last\n", "exited", 7)
    assert (await processes.read_background(id)).text == ""


async def test_what_it_starts_belongs_to_it(processes, marked, tmp_path):
    """A command that sends its server to the background itself is running as long as the server is."""
    id = await processes.start_background("setsid sleep 1000 & echo started", env=marked.env)
    await _read_until(processes, id, "started\n")
    assert processes.list_background()[0].state == "running" and marked.pids()
    assert (await processes.stop_background(id)).state == "killed"
    assert not marked.pids()


async def test_a_stubborn_one_is_killed(processes, marked):
    id = await processes.start_background("trap '' TERM; echo up; while :; do sleep 1000; done", env=marked.env)
    await _read_until(processes, id, "up\n")
    await processes.stop_background(id)
    assert not marked.pids()


async def test_all_end_with_the_session(tmp_path, marked):
    processes = SessionProcesses(str(tmp_path), policy=SandboxPolicy(mode="off"), grace=0.3)
    for command in ("sleep 1000", "trap '' TERM; setsid sleep 1000 & wait", "true"):
        await processes.start_background(command, env=marked.env)
    log = processes.list_background()[0].log
    await processes.aclose()
    assert not marked.pids() and processes.list_background() == [] and not os.path.exists(log)


async def test_a_flood_is_bounded_and_its_newest_part_readable(processes, tmp_path):
    id = await processes.start_background("head -c 5M /dev/zero | tr '\\0' x; echo; echo newest")
    read = await processes.read_background(id, wait=20)
    assert len(read.text) < 100_000 and read.text.endswith("newest\n") and "left out" in read.text


async def test_their_number_is_capped_but_ended_ones_do_not_count(processes, monkeypatch):
    monkeypatch.setattr(processes._background, "_max_running", 2)
    first = await processes.start_background("sleep 1000")
    await processes.start_background("sleep 1000")
    with pytest.raises(ToolError, match="2 background commands are already running"):
        await processes.start_background("true")
    await processes.stop_background(first)
    assert await processes.start_background("true")


async def test_an_unknown_id_says_which_there_are(processes):
    await processes.start_background("true")
    with pytest.raises(ToolError, match="available: bg1"):
        await processes.stop_background("bg9")


async def test_a_crash_is_told_as_a_shell_would(processes):
    id = await processes.start_background("kill -SEGV $$")
    state = (await processes.read_background(id, wait=10)).job
    assert (state.state, state.exit_code) == ("exited", 128 + signal.SIGSEGV)
