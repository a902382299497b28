"""Resuming after a crash: interrupted children, steering prompts, failed starts."""

import asyncio
import json
import os
import subprocess
import sys

import pytest

from ostler.testing.model_server import calls, text

STEERED = """
import asyncio, os, signal, sys
import ostler
from ostler.core.events import TextDelta
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import Steer


async def main():
    async with ostler.open_session(".", base_url=sys.argv[1], model="scripted") as conversation:
        async for event in conversation.stream("write a parser"):
            if isinstance(event, TextDelta):
                assert await conversation.session.apply(Steer(Prompt("s1", (TextContent("use tabs, please"),))))
                os.kill(os.getpid(), signal.SIGKILL)


asyncio.run(main())
"""


@pytest.mark.req("EN-4", "SE-1")
def test_resume_after_a_crash_during_a_task(ostler, models):
    task = calls([("task", {"prompt": "count to ten", "agent": "general"})])
    with models.playing(task, text("one two three", chunks=3).stall_after(3), text("ok")) as server:
        flags = ["--base-url", server.base_url, "--model", "scripted"]
        command = [sys.executable, "-P", "-m", "ostler", "run", *flags, "let a subagent count"]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            command, cwd=ostler.workspace, env=ostler.environment(), stdin=quiet, stdout=quiet, stderr=quiet
        ) as process:
            asyncio.run_coroutine_threadsafe(server.wait_for_requests(2), models._loop).result(timeout=40)
            process.kill()
        done = ostler("run", "--continue", *flags, "and now?")
        sent = json.dumps(server.requests[2].json["messages"])
    assert done.code == 0, done.stderr
    assert "let a subagent count" in sent and "may have partly completed" in sent and "and now?" in sent


@pytest.mark.req("SH-8")
def test_nothing_is_left_in_the_workspace_after_a_crash_during_a_command(ostler, models):
    command = [sys.executable, "-P", "-m", "ostler", "run", "--write", "--model", "scripted"]
    reply = calls([("bash", {"command": "touch started; exec sleep 1000"})])
    with models.playing(reply) as server:
        with subprocess.Popen(
            [*command, "--base-url", server.base_url, "wait"],
            **{"cwd": ostler.workspace, "env": ostler.environment(), "stdin": subprocess.DEVNULL},
            **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
        ) as process:
            while not (ostler.workspace / "started").exists():
                assert process.poll() is None
                os.sched_yield()
            before = set(os.listdir(ostler.workspace))
            process.kill()
        while (left := set(os.listdir(ostler.workspace))) & {".mcp.json", ".vscode", ".ostler"}:
            os.sched_yield()  # until the timeout of the test
    assert left <= before and "started" in left


@pytest.mark.req("EN-16", "SE-1")
def test_steering_survives_a_crash(ostler, models, tmp_path):
    (tmp_path / "steered.py").write_text(STEERED)
    with models.playing(text("I be gin", chunks=3).stall_after(3), text("ok"), text("ok")) as server:
        command = [sys.executable, "-P", str(tmp_path / "steered.py"), server.base_url]
        killed = subprocess.run(command, cwd=ostler.workspace, env=ostler.environment(), timeout=60, check=False)
        assert killed.returncode == -9
        for line in ("go on", "and on"):
            done = ostler("run", "--continue", "--base-url", server.base_url, "--model", "scripted", line)
            assert done.code == 0, done.stderr
        histories = [request.json["messages"] for request in server.requests[1:]]
    assert len(histories) == 2
    for messages in histories:
        assert json.dumps(messages).count("use tabs, please") == 1
    sent = json.dumps(histories[0])
    assert sent.index("write a parser") < sent.index("use tabs, please")


@pytest.mark.req("SE-1")
@pytest.mark.parametrize("refused", [["--agent", "nobody", "x"], ["@agent:nobody x"]])
def test_failed_start_is_not_continued(ostler, models, refused):
    with models.playing(text("ok"), text("ok")) as server:
        flags = ["--base-url", server.base_url, "--model", "scripted"]
        assert ostler("run", *flags, "remember the milk").code == 0
        assert ostler("run", *flags, *refused).code == 2
        assert ostler("run", "--continue", *flags, "and now?").code == 0
        assert "remember the milk" in json.dumps(server.requests[1].json["messages"])
