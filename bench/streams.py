"""CPU time for reading a long answer in tiny pieces, compared with plain reads and with a vendor's SDK."""

import asyncio
import http.client
import importlib.util
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO
from urllib.parse import urlsplit

PIECES = 51_200
BUDGET = 1.5
DELIVERY_PATHS = {"at once": "burst", "piece by piece": "paced"}
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


def read_bare_socket(base_url: str) -> int:
    """Read the bytes from the socket without parsing them."""
    url = urlsplit(base_url)
    with socket.create_connection((url.hostname or "", url.port or 0)) as connection:
        request = b"POST %b/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b"
        connection.sendall(request % (url.path.encode(), len(_REQUEST_BODY), _REQUEST_BODY))
        size, last = 0, b""
        while not last.endswith(b"\r\n0\r\n\r\n"):
            data = connection.recv(262_144)
            size, last = size + len(data), (last + data)[-8:]
    return size


def read_bare_http(base_url: str) -> int:
    """Read the body with the standard library's HTTP client, without parsing it."""
    url = urlsplit(base_url)
    connection = http.client.HTTPConnection(url.netloc)
    connection.request("POST", f"{url.path}/chat/completions", _REQUEST_BODY, {"content-type": "application/json"})
    size = len(connection.getresponse().read())
    connection.close()
    return size


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


def cpu_ms(read: Callable[[str], int], base_url: str, times: int) -> float:
    """Return the minimum CPU time of several runs, in milliseconds, after a warm-up."""
    costs = []
    for _ in range(times + 1):
        started = time.process_time()
        size = read(base_url)
        costs.append(time.process_time() - started)
        assert size >= PIECES * 4, f"{read.__name__} read only {size} characters"
    return min(costs[1:]) * 1000


def rows(repeats: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield one row for each kind of delivery."""
    command = [sys.executable, "-c", "from bench.streams import serve; serve()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            for name, path in DELIVERY_PATHS.items():
                yield _row(name, f"http://127.0.0.1:{port}/{path}", max(3, repeats // 2))
        finally:
            server.kill()


def _row(name: str, base_url: str, times: int) -> tuple[str, str, str, str]:
    own, http_read, socket_read = (
        cpu_ms(read_with_ostler, base_url, times),
        cpu_ms(read_bare_http, base_url, times),
        cpu_ms(read_bare_socket, base_url, times),
    )
    comparison = [
        f"{own / http_read:.2f} × a plain HTTP read ({http_read:.0f} ms)",
        f"{own / socket_read:.1f} × a plain socket ({socket_read:.1f} ms)",
    ]
    if importlib.util.find_spec("openai"):
        theirs = cpu_ms(read_with_sdk, base_url, 2)
        comparison.append(f"openai SDK {theirs / http_read:.1f} × ({theirs:.0f} ms)")
    verdict = "within" if own <= BUDGET * http_read else "**over**"
    return (
        f"200 KB in {PIECES:,} deltas {name}, CPU",
        f"{own:.0f} ms",
        "; ".join(comparison),
        f"{verdict} {BUDGET:g} × a plain HTTP read",
    )


if __name__ == "__main__":
    for row in rows(7):
        print(" | ".join(row))
