"""Reading a program's output: however it ends, pending requests fail."""

import asyncio
import os
import sys

import pytest

from ostler.core.errors import BackendError, JournalError
from ostler.stdio_rpc.program import Launch, RpcProgram, start_program
from ostler.wire.jsonrpc import MCP_CANCEL, JsonRpcPeer

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
    process = RpcProgram(Launch("echo", (), {}, ".", "echo"))
    process._program = program
    process.peer = JsonRpcPeer(lambda line: None, FailingHandler())
    process._reader_task = asyncio.ensure_future(process.read())
    with pytest.raises(BackendError, match=r"could not be saved|closed its output"):
        async with asyncio.timeout(60):
            await process.request("session/prompt", {})
    assert process.peer.closed
    await process._reader_task


SERVER = """
import json, sys
for line in sys.stdin:
    frame = json.loads(line)
    if frame["method"] == "add":
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": sum(frame["params"]["numbers"])}), flush=True)
    elif frame["method"] == "notifications/cancelled":
        sys.exit(f"cancelled {frame['params']['requestId']}")
"""


async def start_server(folder, handler):
    launch = Launch(sys.executable, ("-c", SERVER), dict(os.environ), str(folder), "the server")
    return await start_program(launch, handler, cancel_method=MCP_CANCEL)


async def test_program_answers_requests(tmp_path):
    program = await start_server(tmp_path, FailingHandler())
    assert await program.request("add", {"numbers": [1, 2]}, timeout=60) == 3
    await program.stop()
    with pytest.raises(BackendError):
        await program.request("add", {"numbers": []})


async def test_requests_of_a_program_that_ended_fail_with_its_last_output(tmp_path):
    program = await start_server(tmp_path, FailingHandler())
    hanging = asyncio.ensure_future(program.request("hang", {}))
    cancelled = asyncio.ensure_future(program.request("hang", {}))
    await program.request("add", {"numbers": []}, timeout=60)
    cancelled.cancel()
    with pytest.raises(BackendError, match="the server ended with exit code 1; last output: cancelled 3"):
        async with asyncio.timeout(60):
            await hanging
    await program.stop()
