"""The reading of an agent's output: whatever ends it, nobody waits for an answer that cannot come."""

import asyncio

import pytest

from ostler.backends.acp.process import AgentProcess, Launch
from ostler.core.errors import BackendError, JournalError
from ostler.wire.jsonrpc import JsonRpcPeer

pytestmark = pytest.mark.req("AC-5")

UPDATE = b'{"jsonrpc": "2.0", "method": "session/update", "params": {}}'


class Unkept:
    """A handler whose events cannot be written down."""

    def handle_request(self, method, params):
        raise AssertionError("it asks for nothing")

    def handle_notification(self, method, params):
        raise JournalError("no space left")


class Talking:
    """A program that says one thing and goes on."""

    is_running = True

    def __init__(self, said):
        self.stdout = asyncio.StreamReader()
        self.stdout.feed_data(said)

    async def wait(self, seconds):
        return None


@pytest.mark.parametrize("ends", [False, True])
async def test_words_that_cannot_be_kept_end_the_conversation(ends):
    program = Talking(UPDATE if ends else UPDATE + b"\n")
    if ends:
        program.stdout.feed_eof()
    process = AgentProcess(Launch("echo", (), {}, "."), program)
    process.peer = JsonRpcPeer(lambda line: None, Unkept())
    process._reader_task = asyncio.ensure_future(process.read())
    with pytest.raises(BackendError, match=r"could not be kept|closed its output"):
        async with asyncio.timeout(60):
            await process.request("session/prompt", {})
    assert process.peer.closed
    await process._reader_task
