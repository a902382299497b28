"""CPU time for reading a long answer in tiny pieces, compared with a plain read and with a vendor's SDK."""

import asyncio
import http.client
import importlib.util
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO
from urllib.parse import urlsplit

PIECES = 51_200
BUDGET = 1.5
Reader = Callable[[str], int]
_REQUEST_BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'


def encoded_reply() -> list[bytes]:
    """Return the answer as servers send it: 200 KB of text, four bytes per event, one event per chunk."""
    line = 'def add(a, b):\n    return a + b  # it\'s "fine" — ok\n'
    text = line * (PIECES * 4 // len(line) + 1)
    frames = [_frame({"role": "assistant", "content": ""})]
    frames += [_frame({"content": text[start : start + 4]}) for start in range(0, PIECES * 4, 4)]
    usage = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}
    frames += [_frame({}, "stop"), b"data: " + json.dumps(usage).encode() + b"\n\n", b"data: [DONE]\n\n"]
    return [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames]


def _frame(delta: dict[str, str], finish: str | None = None) -> bytes:
    frame = {
        "id": "chatcmpl-3f2a8c1d9e",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": "a-model",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    return b"data: " + json.dumps(frame, separators=(",", ":")).encode() + b"\n\n"


def serve() -> None:
    """Run the server, in its own process so that its CPU time is not measured; the path selects the delivery."""
    pieces = encoded_reply()
    burst = b"".join(pieces)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection, connection.makefile("rb") as reader:
                while request := reader.readline():
                    _skip_request(reader)
                    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                    connection.sendall(head)
                    for piece in pieces if b"paced" in request else [burst]:
                        connection.sendall(piece)
                    connection.sendall(b"0\r\n\r\n")


def _skip_request(reader: BinaryIO) -> None:
    length = 0
    while (header := reader.readline()) not in (b"\r\n", b""):
        if header.lower().startswith(b"content-length:"):
            length = int(header.split(b":")[1])
    reader.read(length)


def _request(path: str) -> bytes:
    head = b"POST %b/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b"
    return head % (path.encode(), len(_REQUEST_BODY), _REQUEST_BODY)


def read_bare_http(base_url: str) -> int:
    """Read the body with the standard library's HTTP client, without parsing it."""
    url = urlsplit(base_url)
    connection = http.client.HTTPConnection(url.netloc)
    connection.request("POST", f"{url.path}/chat/completions", _REQUEST_BODY, {"content-type": "application/json"})
    size = len(connection.getresponse().read())
    connection.close()
    return size


def read_bare_stream(base_url: str) -> int:
    """Read the bytes with an asyncio stream, which wakes up for each piece, without parsing them."""
    url = urlsplit(base_url)

    async def read() -> int:
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(_request(url.path))
        size, last = 0, b""
        while not last.endswith(b"\r\n0\r\n\r\n"):
            data = await reader.read(262_144)
            size, last = size + len(data), (last + data)[-8:]
        writer.close()
        await writer.wait_closed()
        return size

    return asyncio.run(read())


def read_with_ostler(base_url: str) -> int:
    """Read the answer with Ostler's client."""
    from ostler.core.prompt import TextContent
    from ostler.models.client_factory import NetworkConfig, make_client
    from ostler.models.model_types import ModelRequest, TextChunk, UserMessage

    async def read() -> int:
        client = make_client(api_kind="openai", base_url=base_url, model="m", network=NetworkConfig(environ={}))
        request = ModelRequest("", (UserMessage((TextContent("hi"),)),))
        texts = [chunk.text async for chunk in client.stream(request) if isinstance(chunk, TextChunk)]
        await client.aclose()
        return len("".join(texts))

    return asyncio.run(read())


def read_with_sdk(base_url: str) -> int:
    """Read the answer with OpenAI's client."""
    import openai

    client = openai.OpenAI(base_url=base_url, api_key="x", max_retries=0)
    with client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True) as stream:
        return sum(len(choice.delta.content or "") for chunk in stream for choice in chunk.choices)


def cpu_ms(readers: Sequence[Reader], base_url: str, times: int) -> list[float]:
    """Return the median CPU time of each reader in milliseconds. They alternate, because the delivery varies."""
    costs: dict[Reader, list[float]] = {read: [] for read in readers}
    for number in range(times + 1):
        for read in readers:
            started = time.process_time()
            size = read(base_url)
            if number:  # the first is a warm-up
                costs[read].append(time.process_time() - started)
            assert size >= PIECES * 4, f"{read.__name__} read only {size} characters"
    return [statistics.median(spent) * 1000 for spent in costs.values()]


def rows(repeats: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield one row for each kind of delivery."""
    command = [sys.executable, "-c", "from bench.streams import serve; serve()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            yield _row("at once", f"http://127.0.0.1:{port}/burst", "a plain HTTP read", read_bare_http, repeats)
            yield _row(
                "piece by piece",
                f"http://127.0.0.1:{port}/paced",
                "a plain asyncio stream, which also wakes up for each piece",
                read_bare_stream,
                repeats,
            )
        finally:
            server.kill()


def _row(name: str, base_url: str, floor_name: str, floor: Reader, times: int) -> tuple[str, str, str, str]:
    own, plain = cpu_ms([read_with_ostler, floor], base_url, max(5, times))
    comparison = [f"{own / plain:.2f} × {floor_name} ({plain:.0f} ms)"]
    if importlib.util.find_spec("openai"):
        (theirs,) = cpu_ms([read_with_sdk], base_url, 2)
        comparison.append(f"openai SDK {theirs / plain:.1f} × ({theirs:.0f} ms)")
    verdict = "within" if own <= BUDGET * plain else "**over**"
    return (
        f"200 KB in {PIECES:,} deltas {name}, CPU",
        f"{own:.0f} ms",
        "; ".join(comparison),
        f"{verdict} {BUDGET:g} ×",
    )


if __name__ == "__main__":
    for row in rows(7):
        print(" | ".join(row))
