"""No child process survives Ostler, however it ends."""

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
        policy = SandboxPolicy(mode=mode, writable=(workspace,))
        processes = SessionProcesses(workspace, policy=policy, backends=(backend,))
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
    found, pending = set(), [root]
    while pending:
        for child in children.get(pending.pop(), ()):
            found.add(child)
            pending.append(child)
    return found


def _run_and_end(tmp_path, marked, ending, backend, eventually, is_running):
    program = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path), backend, ending, marked.value],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the test runner may ignore it
    )
    with program:
        assert program.stdout is not None and program.stdout.readline() == b"up\n"
        if ending in _SIGNALS:
            assert eventually(lambda: len(marked.pids()) >= 6)
            children = _descendants(program.pid) | marked.pids()
            os.kill(program.pid, _SIGNALS[ending])
        else:
            children = marked.pids()
        program.wait(20)
    assert marked.all_gone()
    assert eventually(lambda: not any(is_running(pid) for pid in children))


@pytest.mark.req("SH-2")
@pytest.mark.parametrize("backend", _BACKENDS)
def test_no_process_is_left_after_sigkill(tmp_path, marked, backend, eventually, is_running):
    _run_and_end(tmp_path, marked, "SIGKILL", backend, eventually, is_running)


@pytest.mark.req("SH-2")
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGHUP", "SIGINT", "exit", "error"])
def test_no_process_is_left_after_other_ends(tmp_path, marked, ending, eventually, is_running):
    _run_and_end(tmp_path, marked, ending, "off", eventually, is_running)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.req("SH-2")
@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM", "SIGHUP", "exit"])
def test_no_process_is_left_after_many_ends(tmp_path, marked, ending, eventually, is_running):
    for _ in range(100):
        _run_and_end(tmp_path, marked, ending, "off", eventually, is_running)


_OUTPUT_PROGRAM = textwrap.dedent("""
    import asyncio, sys
    from ostler.processes.sandbox_policy import SandboxPolicy
    from ostler.processes.session_processes import SessionProcesses

    async def main(workspace, command):
        processes = SessionProcesses(workspace, policy=SandboxPolicy(mode="off"))
        result = await processes.run(command, timeout=300, on_output=lambda text: None)
        await processes.aclose()
        # not getrusage: its peak is inherited from the parent process
        peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
        print(int(peak.split()[1]) // 1024, len(result.stdout), result.exit_code)

    asyncio.run(main(*sys.argv[1:]))
""")


def _run_output_program(tmp_path, command):
    argv = [sys.executable, "-c", _OUTPUT_PROGRAM, str(tmp_path), command]
    completed = subprocess.run(argv, capture_output=True, text=True, check=True)
    return tuple(int(field) for field in completed.stdout.split())


@pytest.mark.req("SH-1")
@pytest.mark.parametrize(
    "command", ["yes | head -c 200M", "head -c 100M /dev/zero"], ids=["lines", "one line of zeros"]
)
def test_large_output_uses_limited_memory(tmp_path, command):
    megabytes, length, exit_code = _run_output_program(tmp_path, command)
    assert megabytes < 60 and 200_000 < length < 300_000 and exit_code == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.req("SH-1")
def test_ten_gigabytes_of_output_use_limited_memory(tmp_path):
    megabytes, _, exit_code = _run_output_program(tmp_path, "yes | head -c 10G")
    assert megabytes < 60 and exit_code == 0
