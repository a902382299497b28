"""A real sandbox leaves nothing in the workspace, however Ostler ends, and commands never get the protected names."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from ostler.processes import bubblewrap

pytestmark = [
    pytest.mark.req("SH-8"),
    pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason()),
]

_PROGRAM = textwrap.dedent("""
    import asyncio, os, sys
    from ostler.processes.sandbox_policy import SandboxPolicy
    from ostler.processes.session_processes import SessionProcesses

    async def main(workspace, command, mark, ending):
        policy = SandboxPolicy(mode="require", writable=(workspace,))
        processes = SessionProcesses(workspace, policy=policy, backends=("bubblewrap",))
        up = asyncio.Event()
        running = asyncio.create_task(
            processes.run(command, timeout=600, env={"OSTLER_TEST_MARK": mark}, on_output=lambda _: up.set())
        )
        await up.wait()
        print("up", flush=True)
        if ending == "exit":
            os._exit(0)
        if ending == "error":
            raise ValueError("a bug")
        await running
        await processes.aclose()

    asyncio.run(main(*sys.argv[1:]))
""")
_SIGNALS = {name: getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")}
_ENDINGS = (*_SIGNALS, "exit", "error", "group")
_NAMES = {".mcp.json", ".ostler", ".vscode"}
# Tries to create the names all the time, so that it would use any moment in which they are free.
_ATTACK = """
trap '' TERM HUP INT
echo up
while :; do
    rmdir .vscode .ostler .mcp.json; mkdir -p .vscode/x .ostler/x; echo evil > .mcp.json; mv .vscode away
done 2> /dev/null
"""


def _start(workspace, command, mark, ending=""):
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(workspace), command, mark, ending],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the test runner may ignore it
    )


def _wait_until_up(program):
    assert program.stdout is not None and program.stdout.readline() == b"up\n"


@pytest.mark.parametrize("ending", _ENDINGS)
def test_nothing_is_left_in_the_workspace(tmp_path, marked, eventually, ending):
    with _start(tmp_path, _ATTACK, marked.value, ending) as program:
        _wait_until_up(program)
        if ending in _SIGNALS:
            assert set(os.listdir(tmp_path)) == _NAMES
            os.kill(program.pid, _SIGNALS[ending])
        elif ending == "group":
            os.killpg(program.pid, signal.SIGKILL)
        program.wait(20)
    assert eventually(lambda: not os.listdir(tmp_path), 20), os.listdir(tmp_path)
    assert marked.all_gone()


@pytest.mark.parametrize("command", ["echo up", "echo up; kill -SEGV $$", "echo up; kill -9 -1"])
def test_nothing_is_left_after_a_command(tmp_path, marked, command):
    with _start(tmp_path, command, marked.value) as program:
        _wait_until_up(program)
        assert program.wait(60) == 0
    assert os.listdir(tmp_path) == []  # at once: the session waits for it


def test_placeholders_stay_while_another_session_needs_them(tmp_path, marked, eventually):
    with _start(tmp_path, "echo up; sleep 1000", marked.value) as first, _start(tmp_path, _ATTACK, "other") as second:
        _wait_until_up(first)
        _wait_until_up(second)
        first.kill()
        assert marked.all_gone()
        assert set(os.listdir(tmp_path)) == _NAMES
        second.kill()
    assert eventually(lambda: not os.listdir(tmp_path), 20), os.listdir(tmp_path)
