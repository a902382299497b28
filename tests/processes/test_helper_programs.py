"""Helper programs: run to completion, or connected over their streams."""

import asyncio
import os
import signal
import sys

import pytest

from ostler.core.errors import ToolError
from ostler.processes.helper_programs import open_program, run_program

_ENV = {"PATH": os.environ["PATH"]}


async def test_program_runs_without_shell(tmp_path):
    result = await run_program(["printf", "%s|", "a b", "$HOME", "; echo x"], cwd=str(tmp_path), timeout=60)
    assert (result.stdout, result.exit_code) == ("a b|$HOME|; echo x|", 0)


async def test_environment_has_no_secrets_unless_given(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-1")
    result = await run_program(["env"], cwd=str(tmp_path), timeout=60)
    assert "SOME_API_KEY" not in result.stdout and "GIT_TERMINAL_PROMPT=0" in result.stdout
    result = await run_program(["env"], cwd=str(tmp_path), timeout=60, env={**_ENV, "ONLY": "this"})
    assert set(result.stdout.splitlines()) == {f"PATH={_ENV['PATH']}", "ONLY=this"}


async def test_output_beyond_cap_is_dropped(tmp_path):
    result = await run_program(["head", "-c", "100000", "/dev/zero"], cwd=str(tmp_path), timeout=60, cap=1000)
    assert result.truncated and result.output_file == "" and len(result.stdout) < 1100


async def test_timeout_and_cancel_kill_program(tmp_path, marked):
    env = {**_ENV, **marked.env}
    result = await run_program(["sh", "-c", "setsid sleep 1000 & sleep 1000"], cwd=str(tmp_path), timeout=0.3, env=env)
    assert result.timed_out and not marked.pids()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await run_program(["sleep", "1000"], cwd=str(tmp_path), timeout=60, env=env)
    assert not marked.pids()


@pytest.mark.parametrize("argv", [["/nowhere/at-all"], ["no-such-program-here"], ["/etc/passwd"]])
async def test_missing_program_is_reported(tmp_path, argv):
    with pytest.raises(ToolError, match="was not found"):
        await run_program(argv, cwd=str(tmp_path), timeout=60)


async def test_program_communicates_over_streams(tmp_path, marked):
    stderr = bytearray()
    code = "import sys\nprint('ready', file=sys.stderr)\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"
    program = await open_program(
        [sys.executable, "-c", code], cwd=str(tmp_path), env={**_ENV, **marked.env}, on_stderr=stderr.extend
    )
    for line in (b"one\n", b"x" * 300_000 + b"\n"):
        program.stdin.write(line)
        await program.stdin.drain()
        assert await program.stdout.readline() == line.upper()
    program.stdin.write_eof()
    assert await program.stdout.read() == b""
    assert await program.wait(10) == 0 and not program.is_running
    await program.stop()
    await program.stop()
    assert bytes(stderr) == b"ready\n"


ASYNC_ECHO = """
import asyncio, sys
async def main():
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stdout)
    while line := await reader.readline():
        transport.write(line.upper())
asyncio.run(main())
"""


async def test_input_and_output_are_separate_streams(tmp_path, marked):
    """asyncio treats a readable socket as closed, so a program must not write to the socket of its input."""
    program = await open_program(
        [sys.executable, "-c", ASYNC_ECHO],
        cwd=str(tmp_path),
        env={**_ENV, **marked.env},
        on_stderr=lambda _: None,
    )
    for line in (b"one\n", b"two\n"):
        program.stdin.write(line)
        assert await program.stdout.readline() == line.upper()
    await program.stop()


async def test_program_is_stopped_with_its_children(tmp_path, marked):
    program = await open_program(
        ["sh", "-c", "trap '' TERM; setsid sleep 1000 & echo up; sleep 1000; sleep 1000"],
        cwd=str(tmp_path),
        env={**_ENV, **marked.env},
        on_stderr=lambda _: None,
    )
    assert await program.stdout.readline() == b"up\n"
    assert program.is_running and await program.wait(0.01) is None
    await program.stop(grace=0.1)
    assert not marked.pids()
    assert await program.wait() == 128 + signal.SIGKILL


async def test_open_program_reports_missing_program(tmp_path):
    with pytest.raises(ToolError, match="'no-such-program' was not found"):
        await open_program(["no-such-program"], cwd=str(tmp_path), env=_ENV, on_stderr=lambda _: None)
