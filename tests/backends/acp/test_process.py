"""Reading an agent's output: however it ends, pending requests fail."""

import asyncio

import pytest

from ostler.backends.acp.process import AgentProcess, Launch
from ostler.core.errors import BackendError, JournalError
from ostler.wire.jsonrpc import JsonRpcPeer

pytestmark = pytest.mark.req("AC-5")

UPDATE = b'{"jsonrpc": "2.0", "method": "session/update", "params": {}}'


class FailingHandler:
    """A handler whose events cannot be saved."""

    def handle_request(self, method, params):
        raise AssertionError("unexpected request")

    def handle_notification(self, method, params):
        raise JournalError("no space left")


class FakeProgram:
    """A program that prints one thing and keeps running."""

    is_running = True

    def __init__(self, output):
        self.stdout = asyncio.StreamReader()
        self.stdout.feed_data(output)

    async def wait(self, seconds):
        return None


@pytest.mark.parametrize("ends", [False, True])
async def test_output_that_cannot_be_saved_ends_the_connection(ends):
    program = FakeProgram(UPDATE if ends else UPDATE + b"\n")
    if ends:
        program.stdout.feed_eof()
    process = AgentProcess(Launch("echo", (), {}, "."), program)
    process.peer = JsonRpcPeer(lambda line: None, FailingHandler())
    process._reader_task = asyncio.ensure_future(process.read())
    with pytest.raises(BackendError, match=r"could not be saved|closed its output"):
        async with asyncio.timeout(60):
            await process.request("session/prompt", {})
    assert process.peer.closed
    await process._reader_task
