"""Commands: what they return, how they end, and that nothing of them is left."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from ostler.core.errors import ToolError
from ostler.processes import spawner_client
from ostler.processes.sandbox_policy import SandboxPolicy
from ostler.processes.session_processes import SessionProcesses

OFF = SandboxPolicy(mode="off")


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
async def test_a_command_returns_what_it_did(processes, command, stdout, stderr, exit_code):
    ran = await processes.run(command, timeout=60)
    assert (ran.stdout, ran.stderr, ran.exit_code) == (stdout, stderr, exit_code)
    assert not ran.timed_out and not ran.truncated and ran.seconds < 20


@pytest.mark.req("SH-1")
async def test_it_runs_in_the_workspace_or_a_folder_of_it(processes, tmp_path):
    (tmp_path / "sub").mkdir()
    assert (await processes.run("pwd", timeout=60)).stdout == f"{tmp_path}\n"
    assert (await processes.run("pwd", timeout=60, cwd="sub")).stdout == f"{tmp_path}/sub\n"


async def test_input_of_any_size_is_given_and_ended(processes):
    data = b"line\n" * 200_000
    assert (await processes.run("wc -c", timeout=60, stdin=data)).stdout == f"{len(data)}\n"
    assert (await processes.run("head -n 1", timeout=60, stdin=data)).stdout == "line\n"
    assert (await processes.run("true", timeout=60, stdin=data)).exit_code == 0


@pytest.mark.parametrize(
    ("command", "cwd", "says"),
    [
        ("echo", "nowhere", "does not exist"),
        ("echo a\0b", "", "zero byte"),
        (": " + "x" * 200_000, "", "128 KiB"),
    ],
)
async def test_what_cannot_start_says_why(processes, command, cwd, says):
    with pytest.raises(ToolError, match=says):
        await processes.run(command, timeout=60, cwd=cwd)


async def test_a_full_table_of_descriptors_is_a_failure_and_no_bug(processes, monkeypatch):
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
async def test_what_a_command_leaves_behind_is_killed_at_once(processes, marked, command):
    ran = await processes.run(command, timeout=30, env=marked.env)
    assert (ran.stdout, ran.exit_code, ran.timed_out) == ("ok\n", 0, False)
    assert ran.seconds < 5
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
        pytest.param("vim -u NONE x", marks=pytest.mark.skipif(not shutil.which("vim"), reason="no vim here")),
    ],
)
async def test_a_timeout_kills_the_whole_tree(processes, marked, command):
    ran = await processes.run(command, timeout=0.3, env=marked.env)
    assert ran.timed_out and ran.exit_code is None
    assert ran.seconds < 3
    assert not marked.pids()


@pytest.mark.req("SH-1", "SH-2")
async def test_output_from_before_a_timeout_is_kept(processes):
    ran = await processes.run("echo before; sleep 1000; echo after", timeout=0.5)
    assert ran.timed_out and ran.stdout == "before\n"


@pytest.mark.req("SH-2")
async def test_the_time_limit_holds_although_somebody_else_holds_the_pipe(processes, tmp_path):
    """A process outside the tree has our pipe open: all that was written is returned, nobody waits for its end."""
    fifo = tmp_path / "hold"
    os.mkfifo(fifo)
    running = asyncio.create_task(processes.run(f"echo $$; read x < {fifo}", timeout=30))
    holder = await asyncio.to_thread(_hold_output_of, tmp_path, fifo)
    try:
        ran = await asyncio.wait_for(running, 60)
        assert ran.exit_code == 0 and ran.stdout.strip().isdigit()
    finally:
        os.close(holder)


def _hold_output_of(folder: Path, fifo: Path) -> int:
    with open(fifo, "w") as writer:  # opens once the command reads
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and str(fifo).encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                    held = os.open(f"/proc/{name}/fd/1", os.O_WRONLY)
                    writer.write("go\n")
                    return held
            except OSError:
                continue
    raise AssertionError("the command was not found")


@pytest.mark.req("SH-2")
async def test_cancelling_kills_the_tree_and_waits_for_its_end(processes, marked, eventually):
    command = "setsid sleep 1000 & (trap '' TERM; sleep 1000 & wait) & echo up; wait"
    up = asyncio.Event()
    running = asyncio.create_task(processes.run(command, timeout=60, env=marked.env, on_output=lambda _: up.set()))
    await up.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not marked.pids()


@pytest.mark.req("SH-2")
async def test_a_shared_end_stops_what_still_runs(tmp_path, marked):
    processes = SessionProcesses(str(tmp_path), policy=OFF, grace=0.3)
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
async def test_output_is_told_while_the_command_runs(processes, tmp_path):
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR | os.O_NONBLOCK)  # open at both ends: no matter who comes first
    told: list[str] = []

    def hear(text: str) -> None:
        told.append(text)
        if len(told) == 1:  # only now may it go on
            os.write(go, b"x\n")

    ran = await processes.run("printf 'gr\\303'; read x < go; printf '\\274n'", timeout=60, on_output=hear)
    os.close(go)
    assert "".join(told) == ran.stdout == "grün"
    assert told[0] == "gr"


async def test_a_listener_that_fails_is_heard_after_the_end(processes, marked):
    def fail(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match="x"):
        await processes.run("echo x; setsid sleep 1000 &", timeout=60, env=marked.env, on_output=fail)
    assert not marked.pids()


@pytest.mark.req("SH-1")
async def test_long_output_is_cut_in_the_middle_and_kept_whole_in_a_file(processes):
    ran = await processes.run("echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end", timeout=30)
    assert ran.truncated and len(ran.stdout) < 300_000
    assert ran.stdout.startswith("begin\nx") and ran.stdout.endswith("x\nend\n") and "left out" in ran.stdout
    assert os.stat(ran.output_file).st_mode & 0o777 == 0o600
    assert Path(ran.output_file).read_bytes() == b"begin\n" + b"x" * 3_000_000 + b"\nend\n"


@pytest.mark.req("SH-2")
async def test_a_dead_keeper_harms_no_running_command_and_is_replaced(processes, eventually):
    await processes.run("true", timeout=60)
    keeper = spawner_client.shared_spawner()
    up = asyncio.Event()
    running = asyncio.create_task(
        processes.run("echo up; sleep 0.2; echo on", timeout=60, on_output=lambda _: up.set())
    )
    await up.wait()
    os.kill(keeper._process.pid, signal.SIGKILL)
    assert (await running).stdout == "up\non\n"
    assert (await processes.run("echo again", timeout=60)).stdout == "again\n"
    assert spawner_client.shared_spawner() is not keeper


@pytest.mark.req("SH-2")
async def test_a_stopped_keeper_is_told_apart_from_a_slow_one(processes, monkeypatch):
    monkeypatch.setattr("ostler.processes.running_command._START_TIMEOUT", 0.2)
    await processes.run("true", timeout=60)
    os.kill(spawner_client.shared_spawner()._process.pid, signal.SIGSTOP)
    with pytest.raises(ToolError, match="does not answer"):
        await processes.run("true", timeout=60)
    monkeypatch.undo()
    assert (await processes.run("echo again", timeout=60)).stdout == "again\n"


@pytest.mark.req("SH-2")
async def test_a_command_that_kills_its_warden_gains_nothing(processes, marked):
    command = "(trap '' TERM; setsid sleep 1000 &); sleep 1000 & kill -9 $PPID; sleep 1000"
    ran = await processes.run(command, timeout=60, env=marked.env)
    assert ran.exit_code is None and "was killed" in ran.stderr
    assert marked.all_gone()


@pytest.mark.req("SH-2")
async def test_a_command_that_stops_its_warden_gains_nothing(processes, marked, monkeypatch):
    monkeypatch.setattr("ostler.processes.running_command._ANSWER_TIMEOUT", 0.3)
    ran = await processes.run("setsid sleep 1000 & kill -STOP $PPID; sleep 1000", timeout=0.3, env=marked.env)
    assert ran.timed_out
    assert marked.all_gone()


@pytest.mark.req("SH-2")
async def test_many_at_once_do_not_mix(processes, marked):
    commands = [f"echo {number}; (setsid sleep 1000 &) ; exit {number}" for number in range(20)]
    ran = await asyncio.gather(*(processes.run(command, timeout=30, env=marked.env) for command in commands))
    assert [(one.stdout, one.exit_code) for one in ran] == [(f"{number}\n", number) for number in range(20)]
    assert not marked.pids()


@pytest.mark.req("SH-2")
async def test_the_end_of_one_command_leaves_another_alone(processes, marked):
    other = await processes.start_background("setsid sleep 1000 & wait", env=marked.env)
    await processes.run("sleep 1000 & true", timeout=60)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await processes.run("sleep 1000", timeout=60)
    assert [job.state for job in processes.list_background() if job.id == other] == ["running"]
    assert marked.pids()


@pytest.mark.req("SH-2")
async def test_a_quick_forker_does_not_slip_through(processes, marked):
    """Processes that are born faster than anyone can list them."""
    command = "f() { for i in 1 2 3 4; do (sleep 0.01; setsid bash -c 'sleep 1000' &) & done; }; while :; do f; done"
    ran = await processes.run(command, timeout=0.5, env=marked.env)
    assert ran.timed_out
    assert marked.all_gone()


async def test_limits_hold(tmp_path):
    processes = SessionProcesses(str(tmp_path), policy=OFF, limits={"RLIMIT_FSIZE": 4096})
    ran = await processes.run("head -c 100000 /dev/zero > big; wc -c < big", timeout=60)
    await processes.aclose()
    assert ran.stdout == "4096\n"


@pytest.mark.parametrize("command", ["git commit", "git rebase -i HEAD", "ssh -p 1 127.0.0.1", "git log -p"])
async def test_interactive_programs_end_by_themselves(processes, tmp_path, command):
    await processes.run(
        "git init -q . && git config user.email a@b.c && git config user.name n && git commit -q --allow-empty -m m",
        timeout=60,
    )
    ran = await processes.run(f"touch new && git add new && {command}", timeout=60)
    assert not ran.timed_out
