"""Commands: their results, how they end, and that no process is left."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from ostler.core.commands import CommandResult
from ostler.core.errors import ToolError
from ostler.processes import spawner_client
from ostler.processes.command_runner import run_to_end
from ostler.processes.helper_programs import get_shared_spawner, run_program
from ostler.processes.output import CommandOutput
from ostler.processes.running_command import SpawnRequest
from ostler.processes.sandbox_policy import SandboxPolicy
from ostler.processes.session_processes import SessionProcesses

NO_SANDBOX = SandboxPolicy(mode="off")


@pytest.mark.req("SH-1")
@pytest.mark.parametrize(
    ("command", "stdout", "stderr", "exit_code"),
    [
        ("echo out; echo err >&2; exit 3", "out\n", "err\n", 3),
        ("printf 'a\\0b'", "a\0b", "", 0),
        ("printf '\\xff\\xfeok'", "��ok", "", 0),
        ("printf 'no newline'", "no newline", "", 0),
        ("kill -SEGV $$", "", "", 128 + signal.SIGSEGV),
        ("cat", "", "", 0),
        ('read x; echo "got $x"; test -t 0', "got \n", "", 1),
        ("(exec < /dev/tty) 2>/dev/null && echo terminal || echo none", "none\n", "", 0),
        ("echo x > /dev/stderr", "", "x\n", 0),
        ("yes | head -n 1", "y\n", "", 0),
        ("ulimit -c", "0\n", "", 0),
        ("test $(cut -d' ' -f6 /proc/$$/stat) = $$ && echo own session", "own session\n", "", 0),
        ("ls /proc/self/fd | wc -l", "4\n", "", 0),
    ],
)
async def test_result_of_command(processes, command, stdout, stderr, exit_code):
    result = await processes.run(command, timeout=60)
    assert (result.stdout, result.stderr, result.exit_code) == (stdout, stderr, exit_code)
    assert not result.timed_out and not result.truncated and result.seconds < 20


@pytest.mark.req("SH-1")
async def test_working_directory(processes, tmp_path):
    (tmp_path / "sub").mkdir()
    assert (await processes.run("pwd", timeout=60)).stdout == f"{tmp_path}\n"
    assert (await processes.run("pwd", timeout=60, cwd="sub")).stdout == f"{tmp_path}/sub\n"


async def test_input_of_any_size_is_passed_and_closed(tmp_path):
    data = b"line\n" * 200_000

    async def run(*argv: str) -> CommandResult:
        return await run_program(argv, cwd=str(tmp_path), timeout=60, stdin=data)

    assert (await run("wc", "-c")).stdout == f"{len(data)}\n"
    assert (await run("head", "-n", "1")).stdout == "line\n"
    assert (await run("true")).exit_code == 0


@pytest.mark.parametrize(
    ("command", "cwd", "reason"),
    [
        ("echo", "nowhere", "does not exist"),
        ("echo a\0b", "", "zero byte"),
        (": " + "x" * 200_000, "", "128 KiB"),
    ],
)
async def test_command_that_cannot_start_gives_reason(processes, command, cwd, reason):
    with pytest.raises(ToolError, match=reason):
        await processes.run(command, timeout=60, cwd=cwd)


async def test_too_many_open_files_is_tool_error(processes, monkeypatch):
    def full() -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("os.pipe", full)
    with pytest.raises(ToolError, match="Too many open files"):
        await processes.run("true", timeout=60)
    monkeypatch.undo()
    assert (await processes.run("true", timeout=60)).exit_code == 0


@pytest.mark.req("SH-2")
@pytest.mark.parametrize(
    "command",
    [
        "sleep 1000 & echo ok",
        "nohup sleep 1000 & echo ok",
        "setsid sleep 1000 & echo ok",
        "(setsid bash -c 'sleep 1000 & sleep 1000' &) ; echo ok",
        "(trap '' TERM; sleep 1000) & echo ok",
        "(trap '' TERM HUP; setsid bash -c \"trap '' TERM; while :; do sleep 1000; done\" &) ; echo ok",
        "set -m; sleep 1000 & echo ok",
        "sleep 1000 & kill -STOP $!; echo ok",
    ],
)
async def test_leftover_processes_are_killed(processes, marked, command):
    result = await processes.run(command, timeout=30, env=marked.env)
    assert (result.stdout, result.exit_code, result.timed_out) == ("ok\n", 0, False)
    assert result.seconds < 5
    assert not marked.pids()


@pytest.mark.req("SH-2")
@pytest.mark.parametrize(
    "command",
    [
        "sleep 1000",
        "trap '' TERM INT HUP; echo x; while :; do sleep 1000; done",
        "setsid -w sleep 1000",
        "sleep 1000 | cat",
        "(sleep 1000 &); exec sleep 1000",
        "kill -STOP $$",
        "bash -c 'exec setsid sleep 1000' & wait",
        pytest.param("vim -u NONE x", marks=pytest.mark.skipif(not shutil.which("vim"), reason="vim is not installed")),
    ],
)
async def test_timeout_kills_process_tree(processes, marked, command):
    result = await processes.run(command, timeout=0.3, env=marked.env)
    assert result.timed_out and result.exit_code is None
    assert result.seconds < 3
    assert not marked.pids()


@pytest.mark.req("SH-1", "SH-2")
async def test_output_before_timeout_is_returned(processes):
    result = await processes.run("echo before; sleep 1000; echo after", timeout=0.5)
    assert result.timed_out and result.stdout == "before\n"


@pytest.mark.req("SH-2")
async def test_command_ends_even_if_other_process_holds_pipe(processes, tmp_path):
    """A process outside the tree holds the pipe open: the output is returned without waiting for that process."""
    fifo = tmp_path / "hold"
    os.mkfifo(fifo)
    running = asyncio.create_task(processes.run(f"echo $$; read x < {fifo}", timeout=30))
    holder = await asyncio.to_thread(_hold_output_of, tmp_path, fifo)
    try:
        result = await asyncio.wait_for(running, 60)
        assert result.exit_code == 0 and result.stdout.strip().isdigit()
    finally:
        os.close(holder)


def _hold_output_of(folder: Path, fifo: Path) -> int:
    with open(fifo, "w") as writer:  # opens once the command reads
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and str(fifo).encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                    fd = os.open(f"/proc/{name}/fd/1", os.O_WRONLY)
                    writer.write("go\n")
                    return fd
            except OSError:
                continue
    raise AssertionError("command not found")


@pytest.mark.req("SH-2")
async def test_cancel_kills_process_tree_and_waits(processes, marked, eventually):
    command = "setsid sleep 1000 & (trap '' TERM; sleep 1000 & wait) & echo up; wait"
    up = asyncio.Event()
    running = asyncio.create_task(processes.run(command, timeout=60, env=marked.env, on_output=lambda _: up.set()))
    await up.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not marked.pids()


@pytest.mark.req("SH-2")
async def test_closing_session_stops_running_command(tmp_path, marked):
    processes = SessionProcesses(str(tmp_path), policy=NO_SANDBOX, grace=0.3)
    up = asyncio.Event()
    running = asyncio.create_task(
        processes.run("echo up; sleep 1000", timeout=60, env=marked.env, on_output=lambda _: up.set())
    )
    await up.wait()
    await processes.aclose()
    assert (await running).exit_code == 128 + signal.SIGTERM
    assert not marked.pids()
    with pytest.raises(ToolError, match="closed"):
        await processes.run("true", timeout=1)


@pytest.mark.req("SH-1")
async def test_output_is_streamed_while_command_runs(processes, tmp_path):
    os.mkfifo(tmp_path / "go")
    fifo = os.open(tmp_path / "go", os.O_RDWR | os.O_NONBLOCK)  # open at both ends, so that the order does not matter
    chunks: list[str] = []

    def on_output(text: str) -> None:
        chunks.append(text)
        if len(chunks) == 1:  # only now the command continues
            os.write(fifo, b"x\n")

    result = await processes.run("printf 'gr\\303'; read x < go; printf '\\274n'", timeout=60, on_output=on_output)
    os.close(fifo)
    assert "".join(chunks) == result.stdout == "grün"
    assert chunks[0] == "gr"


async def test_callback_error_is_raised_after_command_ends(processes, marked):
    def fail(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match="x"):
        await processes.run("echo x; setsid sleep 1000 &", timeout=60, env=marked.env, on_output=fail)
    assert not marked.pids()


@pytest.mark.req("SH-1")
async def test_long_output_is_truncated_and_saved_to_file(processes):
    result = await processes.run("echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end", timeout=30)
    assert result.truncated and len(result.stdout) < 300_000
    assert result.stdout.startswith("begin\nx") and result.stdout.endswith("x\nend\n") and "omitted" in result.stdout
    assert os.stat(result.output_file).st_mode & 0o777 == 0o600
    assert Path(result.output_file).read_bytes() == b"begin\n" + b"x" * 3_000_000 + b"\nend\n"


@pytest.mark.req("SH-2")
async def test_dead_spawner_does_not_affect_running_command_and_is_replaced(processes, eventually):
    await processes.run("true", timeout=60)
    spawner = spawner_client.shared_spawner()
    up = asyncio.Event()
    running = asyncio.create_task(
        processes.run("echo up; sleep 0.2; echo on", timeout=60, on_output=lambda _: up.set())
    )
    await up.wait()
    os.kill(spawner._process.pid, signal.SIGKILL)
    assert (await running).stdout == "up\non\n"
    assert (await processes.run("echo again", timeout=60)).stdout == "again\n"
    assert spawner_client.shared_spawner() is not spawner


@pytest.mark.req("SH-2")
async def test_stopped_spawner_is_detected_and_replaced(processes, monkeypatch):
    monkeypatch.setattr("ostler.processes.running_command._START_TIMEOUT", 0.2)
    await processes.run("true", timeout=60)
    os.kill(spawner_client.shared_spawner()._process.pid, signal.SIGSTOP)
    with pytest.raises(ToolError, match="does not answer"):
        await processes.run("true", timeout=60)
    monkeypatch.undo()
    assert (await processes.run("echo again", timeout=60)).stdout == "again\n"


@pytest.mark.req("SH-2")
async def test_command_that_kills_its_supervisor_is_killed(processes, marked):
    command = "(trap '' TERM; setsid sleep 1000 &); sleep 1000 & kill -9 $PPID; sleep 1000"
    result = await processes.run(command, timeout=60, env=marked.env)
    assert result.exit_code is None and "was killed" in result.stderr
    assert marked.all_gone()


@pytest.mark.req("SH-2")
async def test_command_that_stops_its_supervisor_is_killed(processes, marked, monkeypatch):
    monkeypatch.setattr("ostler.processes.running_command._ANSWER_TIMEOUT", 0.3)
    result = await processes.run("setsid sleep 1000 & kill -STOP $PPID; sleep 1000", timeout=0.3, env=marked.env)
    assert result.timed_out
    assert marked.all_gone()


@pytest.mark.req("SH-2")
async def test_concurrent_commands_are_independent(processes, marked):
    commands = [f"echo {number}; (setsid sleep 1000 &) ; exit {number}" for number in range(20)]
    results = await asyncio.gather(*(processes.run(command, timeout=30, env=marked.env) for command in commands))
    assert [(result.stdout, result.exit_code) for result in results] == [
        (f"{number}\n", number) for number in range(20)
    ]
    assert not marked.pids()


@pytest.mark.req("SH-2")
async def test_end_of_command_does_not_affect_others(processes, marked):
    other = await processes.start_background("setsid sleep 1000 & wait", env=marked.env)
    await processes.run("sleep 1000 & true", timeout=60)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await processes.run("sleep 1000", timeout=60)
    assert [job.state for job in processes.list_background() if job.id == other] == ["running"]
    assert marked.pids()


@pytest.mark.req("SH-2")
async def test_fast_forking_command_is_killed(processes, marked):
    """The command forks faster than its processes can be listed."""
    command = "f() { for i in 1 2 3 4; do (sleep 0.01; setsid bash -c 'sleep 1000' &) & done; }; while :; do f; done"
    result = await processes.run(command, timeout=0.5, env=marked.env)
    assert result.timed_out
    assert marked.all_gone()


async def test_limits_are_enforced(tmp_path):
    argv = ["sh", "-c", "head -c 100000 /dev/zero > big; wc -c < big"]
    request = SpawnRequest(argv, str(tmp_path), os.environ, (("RLIMIT_FSIZE", 4096),))
    output = CommandOutput(lambda: pytest.fail("spilled"))
    result = await run_to_end(get_shared_spawner, request, output, timeout=60)
    assert result.stdout == "4096\n"


@pytest.mark.parametrize("command", ["git commit", "git rebase -i HEAD", "ssh -p 1 127.0.0.1", "git log -p"])
async def test_interactive_programs_end(processes, tmp_path, command):
    await processes.run(
        "git init -q . && git config user.email a@b.c && git config user.name n && git commit -q --allow-empty -m m",
        timeout=60,
    )
    result = await processes.run(f"touch new && git add new && {command}", timeout=60)
    assert not result.timed_out
