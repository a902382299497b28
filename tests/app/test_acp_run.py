"""How `ostler acp run` ends: at once when told twice, and never as a success whose words were lost."""

import asyncio
import errno
import io
import json
import sys

import pytest

from ostler.app import acp_run
from ostler.app.acp_flags import AcpFlags
from ostler.backends.acp import backend

AGENT = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}


@pytest.fixture
def flags(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = tmp_path / "agents.json"
    settings.write_text(json.dumps({"agent_servers": {"echo": AGENT}}))

    def of(prompt):
        return AcpFlags(prompt=prompt, settings=str(settings), cwd=str(tmp_path))

    return of


class Told(io.StringIO):
    """A standard output that says when something was written to it."""

    def __init__(self):
        super().__init__()
        self.anything = asyncio.Event()

    def write(self, text):
        self.anything.set()
        return super().write(text)


@pytest.mark.req("AC-5", "CL-9")
async def test_a_second_signal_does_not_wait_for_an_agent_that_does_not_let_go(flags, monkeypatch):
    monkeypatch.setattr(backend, "CANCEL_WAIT", 3600.0)
    told = Told()
    monkeypatch.setattr(sys, "stdout", told)
    play = acp_run._AcpRun(flags("!deaf"))
    run = asyncio.ensure_future(play.run())
    async with asyncio.timeout(60):
        await told.anything.wait()
        play._stop(acp_run.INTERRUPTED)
        await asyncio.sleep(0)
        play._stop(acp_run.INTERRUPTED)
        assert await run == acp_run.INTERRUPTED


class Full(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.req("AC-5", "CL-9")
async def test_words_that_could_not_be_written_are_no_success(flags, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match="No space left"):
        await acp_run._AcpRun(flags("hello")).run()
