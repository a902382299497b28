"""How `ostler acp run` ends: on a second signal and on write errors."""

import asyncio
import errno
import io
import json
import sys

import msgspec
import pytest

from ostler.app import acp_cli
from ostler.backends.acp import backend
from ostler.frontends.acp_cli import run as acp_run
from ostler.frontends.acp_cli.flags import AcpFlags

AGENT = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}


@pytest.fixture
def flags(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = tmp_path / "agents.json"
    settings.write_text(json.dumps({"agent_servers": {"echo": AGENT}}))

    def make_flags(prompt):
        return AcpFlags(prompt=prompt, settings=str(settings), cwd=str(tmp_path))

    return make_flags


class SignallingOutput(io.StringIO):
    """A standard output that signals the first write."""

    def __init__(self):
        super().__init__()
        self.written = asyncio.Event()

    def write(self, text):
        self.written.set()
        return super().write(text)


@pytest.mark.req("AC-5", "CL-9")
async def test_second_signal_does_not_wait_for_the_agent(flags, monkeypatch):
    monkeypatch.setattr(backend, "CANCEL_WAIT", 3600.0)
    output = SignallingOutput()
    monkeypatch.setattr(sys, "stdout", output)
    acp = acp_cli.make_run(flags("!deaf"))
    run = asyncio.ensure_future(acp.run())
    async with asyncio.timeout(60):
        await output.written.wait()
        acp._stop(acp_run.INTERRUPTED)
        await asyncio.sleep(0)
        acp._stop(acp_run.INTERRUPTED)
        assert await run == acp_run.INTERRUPTED


class FullDisk(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.req("AC-5", "CL-9")
async def test_write_error_is_raised(flags, monkeypatch):
    monkeypatch.setattr(sys, "stdout", FullDisk())
    with pytest.raises(OSError, match="No space left"):
        await acp_cli.make_run(flags("hello")).run()


@pytest.mark.req("AC-5")
async def test_timeout_does_not_count_the_time_that_the_agent_takes_to_exit(flags, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    acp = acp_cli.make_run(msgspec.structs.replace(flags("hello"), timeout=3600.0))
    monkeypatch.setattr(acp_run.LocalSession, "aclose", closing_at_the_timeout(acp, acp_run.LocalSession.aclose))
    async with asyncio.timeout(60):
        assert await acp.run() == 0


def closing_at_the_timeout(acp, aclose):
    """Return a function that lets the timeout fire while the session is closed."""

    async def closing(session):
        if not acp._timer.cancelled():
            acp._stop(acp_run.TIMED_OUT)
        await aclose(session)

    return closing
