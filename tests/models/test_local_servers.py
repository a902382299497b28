"""Finding local servers, also if other programs listen on their ports."""

import asyncio
import contextlib
import time

import pytest

from ostler.http.server_closing import close_server
from ostler.models.local_servers import COMMON_PORTS, LocalServer, find_local_servers
from ostler.testing.model_server import ScriptedModelServer


@contextlib.asynccontextmanager
async def listener(answer: bytes | None):
    """A listener that answers with these bytes, or never."""
    tasks = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        with contextlib.suppress(asyncio.CancelledError, OSError):
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await close_server(server, tasks)


@pytest.mark.req("MD-10")
async def test_servers_are_found_and_named_by_model_owner():
    models = [{"id": "qwen", "owned_by": "vllm"}]
    async with ScriptedModelServer(models=models) as first, ScriptedModelServer(models=["a", "b"]) as second:
        found = await find_local_servers({second.port: "llama.cpp", first.port: "Ollama"}, timeout=5)
    assert found == [
        LocalServer("llama.cpp", f"http://127.0.0.1:{second.port}/v1", ("a", "b")),
        LocalServer("vLLM", f"http://127.0.0.1:{first.port}/v1", ("qwen",)),
    ]


@pytest.mark.req("MD-10")
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 6_000_000,
    ],
)
async def test_other_servers_are_skipped(answer, unused_tcp_port):
    async with listener(answer) as port, ScriptedModelServer() as server:
        found = await find_local_servers({port: "x", unused_tcp_port: "y", server.port: "z"}, timeout=5)
    assert [server.name for server in found] == ["z"]


@pytest.mark.slow
@pytest.mark.req("MD-10")
async def test_silent_ports_are_queried_concurrently():
    async with contextlib.AsyncExitStack() as stack:
        ports = [await stack.enter_async_context(listener(None)) for _ in range(4)]
        started = time.monotonic()
        assert await find_local_servers(dict.fromkeys(ports, "x"), timeout=0.1) == []
        assert time.monotonic() - started < 0.3


def test_common_ports():
    assert COMMON_PORTS == {8000: "vLLM", 11434: "Ollama", 8080: "llama.cpp", 1234: "LM Studio"}
