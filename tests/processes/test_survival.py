"""No child outlives the program, however the program ends."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ostler.processes import bubblewrap, landlock

_PROGRAM = textwrap.dedent("""
    import asyncio, os, sys
    from ostler.processes.sandbox_policy import SandboxPolicy
    from ostler.processes.helper_programs import open_program
    from ostler.processes.session_processes import SessionProcesses

    async def main(workspace, backend, ending, mark):
        mode = "off" if backend == "off" else "require"
        confinement = SandboxPolicy(mode=mode, writable=(workspace,))
        processes = SessionProcesses(workspace, policy=confinement, backends=(backend,))
        env = {"OSTLER_TEST_MARK": mark}
        up = asyncio.Event()
        tree = "trap '' TERM HUP; setsid sleep 1000 & nohup sleep 1000 & (setsid bash -c 'sleep 1000 & wait' &)"
        running = asyncio.create_task(
            processes.run(tree + "; echo up; sleep 1000", timeout=600, env=env, on_output=lambda _: up.set())
        )
        await up.wait()
        await processes.start_background("sleep 1000", env=env)
        await open_program(["cat"], cwd="/", env={**env, "PATH": os.environ["PATH"]}, on_stderr=lambda _: None)
        print("up", flush=True)
        if ending == "exit":
            os._exit(0)
        if ending == "error":
            raise ValueError("a bug")
        await running

    asyncio.run(main(*sys.argv[1:]))
""")

_BACKENDS = [
    "off",
    pytest.param(
        "bubblewrap",
        marks=pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason()),
    ),
    pytest.param(
        "landlock", marks=pytest.mark.skipif(bool(landlock.unavailable_reason()), reason=landlock.unavailable_reason())
    ),
]
_SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP, "SIGINT": signal.SIGINT}


def _descendants(root: int) -> set[int]:
    children: dict[int, set[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path(f"/proc/{name}/stat").read_bytes()
            except OSError:
                continue
            children.setdefault(int(stat[stat.rindex(b")") + 2 :].split()[1]), set()).add(int(name))
    found, todo = set(), [root]
    while todo:
        for child in children.get(todo.pop(), ()):
            found.add(child)
            todo.append(child)
    return found


def _live_and_die(tmp_path, marked, ending, backend, eventually, is_running):
    program = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path), backend, ending, marked.value],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # whoever runs the tests may be deaf to it
    )
    with program:
        assert program.stdout is not None and program.stdout.readline() == b"up\n"
        if ending in _SIGNALS:
            assert eventually(lambda: len(marked.pids()) >= 6)
            below = _descendants(program.pid) | marked.pids()
            os.kill(program.pid, _SIGNALS[ending])
        else:
            below = marked.pids()
        program.wait(20)
    assert marked.all_gone()
    assert eventually(lambda: not any(is_running(pid) for pid in below))


@pytest.mark.req("SH-2")
@pytest.mark.parametrize("backend", _BACKENDS)
def test_nothing_is_left_after_kill_minus_nine(tmp_path, marked, backend, eventually, is_running):
    _live_and_die(tmp_path, marked, "SIGKILL", backend, eventually, is_running)


@pytest.mark.req("SH-2")
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGHUP", "SIGINT", "exit", "error"])
def test_nothing_is_left_after_any_other_end(tmp_path, marked, ending, eventually, is_running):
    _live_and_die(tmp_path, marked, ending, "off", eventually, is_running)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.req("SH-2")
@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM", "SIGHUP", "exit"])
def test_nothing_is_left_after_a_hundred_ends(tmp_path, marked, ending, eventually, is_running):
    for _ in range(100):
        _live_and_die(tmp_path, marked, ending, "off", eventually, is_running)


_LOUD = textwrap.dedent("""
    import asyncio, sys
    from ostler.processes.sandbox_policy import SandboxPolicy
    from ostler.processes.session_processes import SessionProcesses

    async def main(workspace, command):
        processes = SessionProcesses(workspace, policy=SandboxPolicy(mode="off"))
        ran = await processes.run(command, timeout=300, on_output=lambda text: None)
        await processes.aclose()
        # not getrusage: its peak is handed down from whoever started this process
        peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
        print(int(peak.split()[1]) // 1024, len(ran.stdout), ran.exit_code)

    asyncio.run(main(*sys.argv[1:]))
""")


def _memory_of(tmp_path, command):
    words = [sys.executable, "-c", _LOUD, str(tmp_path), command]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    return tuple(int(word) for word in answer.stdout.split())


@pytest.mark.req("SH-1")
@pytest.mark.parametrize("command", ["yes | head -c 1G", "head -c 300M /dev/zero"], ids=["lines", "one line of zeros"])
def test_a_flood_of_output_stays_in_bounds(tmp_path, command):
    megabytes, kept, exit_code = _memory_of(tmp_path, command)
    assert megabytes < 60 and 200_000 < kept < 300_000 and exit_code == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.req("SH-1")
def test_ten_gigabytes_stay_in_bounds(tmp_path):
    megabytes, _, exit_code = _memory_of(tmp_path, "yes | head -c 10G")
    assert megabytes < 60 and exit_code == 0
