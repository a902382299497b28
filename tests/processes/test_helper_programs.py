"""Programs of our own: git and rg to their end, MCP servers and agents to talk to."""

import asyncio
import os
import signal
import sys

import pytest

from ostler.core.errors import ToolError
from ostler.processes.helper_programs import open_program, run_program

_ENV = {"PATH": os.environ["PATH"]}


async def test_a_program_is_run_without_a_shell(tmp_path):
    ran = await run_program(["printf", "%s|", "a b", "$HOME", "; echo x"], cwd=str(tmp_path), timeout=60)
    assert (ran.stdout, ran.exit_code) == ("a b|$HOME|; echo x|", 0)


async def test_its_environment_is_scrubbed_unless_given(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-1")
    ran = await run_program(["env"], cwd=str(tmp_path), timeout=60)
    assert "SOME_API_KEY" not in ran.stdout and "GIT_TERMINAL_PROMPT=0" in ran.stdout
    ran = await run_program(["env"], cwd=str(tmp_path), timeout=60, env={**_ENV, "ONLY": "this"})
    assert set(ran.stdout.splitlines()) == {f"PATH={_ENV['PATH']}", "ONLY=this"}


async def test_output_beyond_the_cap_is_left_out(tmp_path):
    ran = await run_program(["head", "-c", "100000", "/dev/zero"], cwd=str(tmp_path), timeout=60, cap=1000)
    assert ran.truncated and ran.output_file == "" and len(ran.stdout) < 1100


async def test_a_timeout_and_a_cancel_kill_it(tmp_path, marked):
    env = {**_ENV, **marked.env}
    ran = await run_program(["sh", "-c", "setsid sleep 1000 & sleep 1000"], cwd=str(tmp_path), timeout=0.3, env=env)
    assert ran.timed_out and not marked.pids()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await run_program(["sleep", "1000"], cwd=str(tmp_path), timeout=60, env=env)
    assert not marked.pids()


@pytest.mark.parametrize("words", [["/nowhere/at-all"], ["no-such-program-here"], ["/etc/passwd"]])
async def test_what_cannot_be_run_says_so(tmp_path, words):
    with pytest.raises(ToolError, match="was not found"):
        await run_program(words, cwd=str(tmp_path), timeout=60)


async def test_a_program_is_talked_to_over_its_streams(tmp_path, marked):
    heard = bytearray()
    code = "import sys\nprint('ready', file=sys.stderr)\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"
    program = await open_program(
        [sys.executable, "-c", code], cwd=str(tmp_path), env={**_ENV, **marked.env}, on_stderr=heard.extend
    )
    for word in (b"one\n", b"x" * 300_000 + b"\n"):
        program.stdin.write(word)
        await program.stdin.drain()
        assert await program.stdout.readline() == word.upper()
    program.stdin.write_eof()
    assert await program.stdout.read() == b""
    assert await program.wait(10) == 0 and not program.is_running
    await program.stop()
    await program.stop()
    assert bytes(heard) == b"ready\n"


ASYNC_ECHO = """
import asyncio, sys
async def main():
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    writing, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stdout)
    while line := await reader.readline():
        writing.write(line.upper())
asyncio.run(main())
"""


async def test_input_and_output_are_streams_of_their_own(tmp_path, marked):
    """asyncio takes a socket that becomes readable for a closed one, so it may not write to that of its input."""
    program = await open_program(
        [sys.executable, "-c", ASYNC_ECHO],
        cwd=str(tmp_path),
        env={**_ENV, **marked.env},
        on_stderr=lambda _: None,
    )
    for word in (b"one\n", b"two\n"):
        program.stdin.write(word)
        assert await program.stdout.readline() == word.upper()
    await program.stop()


async def test_a_program_is_stopped_with_all_it_started(tmp_path, marked):
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


async def test_a_program_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ToolError, match="'no-such-program' was not found"):
        await open_program(["no-such-program"], cwd=str(tmp_path), env=_ENV, on_stderr=lambda _: None)
