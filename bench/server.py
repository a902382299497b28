"""The server under load on this machine: memory of idle connections, and latency of deltas in many turns at once.

The same numbers of connections and messages go to a bare Starlette echo in the same run.
"""

import asyncio
import json
import math
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bench.full_screen import memory_mb
from bench.mock_model import frame

Row = tuple[str, str, str, str]
HERE = Path(__file__).parent
IDLE, VIEWERS = 1_000, 50  # connections; of them on one session
TURNS, SLOW, PIECES, INTERVAL = 100, 10, 30, 0.1  # at once; of them read slowly; of one turn; seconds between two
FLOOR_KB = 25.0
SESSIONS = "/api/agent/sessions"
MARK = re.compile(r"<(\d+):([\d.]+)>")
HELLO = {"type": "hello", "clientVersion": "bench", "toolManifest": {"tools": []}, "workspaceRoot": "/work"}


def rows(ostler: list[str], env: Mapping[str, str], cwd: str) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget. `ostler` starts the command line."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000), hard))
    return iter(asyncio.run(_measure(ostler, env, cwd)))


async def _measure(ostler: list[str], env: Mapping[str, str], cwd: str) -> list[Row]:
    env = {name: value for name, value in env.items() if name != "PYTHONPATH"}  # the server needs all its packages
    model = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1024)
    url = f"http://127.0.0.1:{model.sockets[0].getsockname()[1]}/v1"
    argv = [*ostler, "serve", "--bind", "127.0.0.1:0", "--base-url", url, "--model", "mock", "--api-key", "x"]
    token = await asyncio.to_thread(_issue_token, ostler, env, cwd)
    async with model, _started(argv, env, cwd, r"listening at http://127.0.0.1:(\d+)") as (pid, port):
        client = BenchClient(port, token)
        floor = [sys.executable, str(HERE / "floor_server.py")]
        async with _started(floor, env, cwd, r"(\d+)") as (floor_pid, floor_port):
            found = [*await _idle_rows(client, pid, floor_pid, floor_port)]
        async with _started(floor, env, cwd, r"(\d+)") as (_, floor_port):
            found += await _turn_rows(client, floor_port)
    return found


def _issue_token(ostler: list[str], env: Mapping[str, str], cwd: str) -> str:
    argv = [*ostler, "serve", "token", "issue", "bench"]
    return subprocess.run(argv, env=env, cwd=cwd, capture_output=True, check=True).stdout.decode().strip()


class BenchClient:
    """Creates sessions and connects to them."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {token}"}

    async def create(self) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        lines = [f"POST {SESSIONS} HTTP/1.1", f"Host: 127.0.0.1:{self._port}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in self._headers.items()]
        writer.write("\r\n".join([*lines, "Content-Length: 0", "", ""]).encode())
        body = (await reader.read()).partition(b"\r\n\r\n")[2]
        writer.close()
        return str(json.loads(body)["sessionId"])

    async def attach(self, session: str, *, narrow: bool = False, **fields: Any) -> ClientConnection:
        """Connect to a session; `narrow` has a receive buffer as small as possible."""
        raw = socket.socket()
        if narrow:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", self._port))
        url = f"ws://127.0.0.1:{self._port}{SESSIONS}/{session}/stream"
        queue = 1 if narrow else 16
        opened = await connect(url, additional_headers=self._headers, sock=raw, compression=None, max_queue=queue)
        await opened.send(json.dumps({**HELLO, **fields}))
        return opened


# -- idle connections --------------------------------------------------------------------------------------------------


async def _idle_rows(client: BenchClient, pid: int, floor_pid: int, floor_port: int) -> list[Row]:
    floor = await _grown_kb(floor_pid, [_connect_floor(floor_port) for _ in range(IDLE)])
    shared = [await client.create() for _ in range(IDLE // VIEWERS)]
    for session in shared:  # the sessions are open before anything is measured
        await _close([await _greeted(client, session)])
    viewers = [_greeted(client, shared[number % len(shared)], toolManifest=None) for number in range(IDLE)]
    ours = await _grown_kb(pid, viewers)
    own = [await client.create() for _ in range(IDLE - len(shared))]
    hosts = await _grown_kb(pid, [_greeted(client, session) for session in own])
    return [
        (
            f"{IDLE:,} idle connections, {VIEWERS} to a session",
            f"{ours:.0f} KB each",
            f"{ours / floor:.1f} × a bare Starlette WebSocket ({floor:.0f} KB)",
            "",
        ),
        (
            f"{len(own):,} idle connections, each with its own open session",
            f"{hosts:.0f} KB each",
            f"{hosts / floor:.1f} × a bare Starlette WebSocket ({floor:.0f} KB)",
            "",
        ),
    ]


async def _grown_kb(pid: int, openings: list[Any]) -> float:
    """Return how much memory of a process each connection takes."""
    before, connections = memory_mb(pid), []
    for start in range(0, len(openings), 50):
        connections += await asyncio.gather(*openings[start : start + 50])
    grown = (memory_mb(pid) - before) * 1024 / len(connections)
    await _close(connections)
    return grown


async def _greeted(client: BenchClient, session: str, **fields: Any) -> ClientConnection:
    connection = await client.attach(session, **fields)
    await connection.recv()
    return connection


async def _connect_floor(port: int) -> ClientConnection:
    return await connect(f"ws://127.0.0.1:{port}/", compression=None)


async def _close(connections: list[ClientConnection]) -> None:
    await asyncio.gather(*(connection.close() for connection in connections))


# -- active turns ------------------------------------------------------------------------------------------------------


async def _turn_rows(client: BenchClient, floor_port: int) -> list[Row]:
    floor = await _echo_delays(floor_port)
    sessions = [await client.create() for _ in range(TURNS)]
    opened = [await client.attach(session, narrow=number < SLOW) for number, session in enumerate(sessions)]
    await asyncio.gather(*(connection.recv() for connection in opened))
    turns = [_run_turn(client, *pair, number) for number, pair in enumerate(zip(sessions, opened, strict=True))]
    results = await asyncio.gather(*turns)
    fast = results[SLOW:]
    first = _percentiles([pieces[0] for pieces in fast])
    ours = _percentiles([delay for pieces in fast for number, delay in pieces.items() if number])
    bare, lost = _percentiles(floor), TURNS * PIECES - sum(map(len, results))
    ratios = f"{ours[0] / bare[0]:.1f} × and {ours[1] / bare[1]:.1f} × an echo of bare Starlette"
    return [
        (
            f"{TURNS} turns at once, {SLOW} slow readers, model until client",
            f"p50 {ours[0]:.1f} ms, p99 {ours[1]:.1f} ms",
            f"{ratios} ({bare[0]:.1f} and {bare[1]:.1f} ms)",
            "",
        ),
        (
            f"· the first piece of each turn, while {TURNS} turns start within {INTERVAL:g} s",
            f"p50 {first[0]:.1f} ms, p99 {first[1]:.1f} ms",
            f"{first[0] / bare[0]:.1f} × and {first[1] / bare[1]:.1f} ×",
            "",
        ),
        (
            "· pieces of text that were lost, also by slow readers",
            f"{lost}",
            f"of {TURNS * PIECES:,}",
            "within 0" if lost == 0 else "**over** 0",
        ),
    ]


async def _run_turn(client: BenchClient, session: str, connection: ClientConnection, number: int) -> dict[int, float]:
    """Run a turn and return the delay of each piece of its text in milliseconds. Resume if the server closes.

    The turns start like the connections of the echo, one after the other within an interval. If all started at once,
    their pieces would arrive in bursts, and each would wait for those of the other turns.
    """
    is_slow = number < SLOW
    await asyncio.sleep(INTERVAL * number / TURNS)
    message = {"type": "user.message", "content": "go", "clientMessageId": "m1"}
    await connection.send(json.dumps(message))
    pieces: dict[int, float] = {}
    position: dict[str, Any] = {}
    while True:
        try:
            data = json.loads(await connection.recv())
        except ConnectionClosed:
            connection = await client.attach(session, narrow=is_slow, resume=position)
            await connection.send(json.dumps(message))
            continue
        now = time.monotonic()
        if data.get("seq"):
            position = {"epoch": data["epoch"], "lastSeq": data["seq"]}
        if data["type"] == "assistant.delta":
            for piece, sent in MARK.findall(data["content"]):
                pieces.setdefault(int(piece), (now - float(sent)) * 1000)
        if data["type"] == "assistant.done":
            await connection.close()
            return pieces
        if is_slow:
            await asyncio.sleep(0.5)


async def _echo_delays(port: int) -> list[float]:
    async def one(number: int) -> list[float]:
        delays = []
        async with await _connect_floor(port) as connection:
            await asyncio.sleep(INTERVAL * number / TURNS)
            for _ in range(PIECES):
                began = time.monotonic()
                await connection.send(f"<0:{began}>")
                await connection.recv()
                delays.append((time.monotonic() - began) * 1000)
                await asyncio.sleep(INTERVAL)
        return delays

    return [delay for delays in await asyncio.gather(*map(one, range(TURNS))) for delay in delays]


def _percentiles(values: list[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[math.ceil(0.99 * len(ordered)) - 1]


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request of the server with pieces that contain the time at which they are sent."""
    head = await reader.readuntil(b"\r\n\r\n")
    if length := re.search(rb"content-length: *(\d+)", head, re.IGNORECASE):
        await reader.readexactly(int(length[1]))
    kind = b"text/event-stream" if head.startswith(b"POST") else b"application/json"
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: " + kind + b"\r\n\r\n")
    if head.startswith(b"POST"):
        for number in range(PIECES):
            writer.write(frame({"content": f"<{number}:{time.monotonic()}>"}))
            await asyncio.sleep(INTERVAL)
        writer.write(frame({}, "stop") + b"data: [DONE]\n\n")
    else:
        writer.write(b'{"data":[{"id":"mock"}]}')
    await writer.drain()
    writer.close()


@asynccontextmanager
async def _started(argv: list[str], env: Mapping[str, str], cwd: str, ready: str) -> AsyncIterator[tuple[int, int]]:
    """Start a server and return its process id and its port, which it prints."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, env=dict(env), cwd=cwd, stdout=pipe)
    try:
        assert process.stdout is not None
        while not (found := re.search(ready, (await process.stdout.readline()).decode())):
            if process.stdout.at_eof():
                raise SystemExit("a server did not start")
        yield process.pid, int(found[1])
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()
