"""MCP servers: the delay that broken ones cause, the tokens of many tools, and the memory of running ones."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure import run
from bench.mock_model import MockModel, text_reply

FAKE_SERVER = Path(__file__).parents[1] / "tests" / "mcp" / "fake_mcp_server.py"
DELAY_BUDGET_MS = 50.0
TOKEN_BUDGET = 1500
MEMORY_BUDGET_MB = 10.0
BROKEN: dict[str, list[str]] = {
    "missing": ["no-such-program"],
    "exits": ["sh", "-c", "exit 1"],
    "silent": ["sleep", "1000"],
    "garbage": ["sh", "-c", "seq 1 5000; exec sleep 1000"],
    "flood": ["sh", "-c", "seq 1 100000 >&2; exec sleep 1000"],
}
SERVERS, TOOLS_EACH = 10, 30

Row = tuple[str, str, str, str]


def rows(argv: Sequence[str], env: Mapping[str, str], folder: Path, model: MockModel, repeats: int) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget."""
    bench = _McpBench(argv, env, folder, model)
    yield bench.delay_row(max(repeats, 9))
    yield bench.token_row()
    yield bench.memory_row(repeats)


class _McpBench:
    def __init__(self, argv: Sequence[str], env: Mapping[str, str], folder: Path, model: MockModel) -> None:
        self._argv = argv
        self._home = folder / "mcp-home"
        (self._home / ".ostler").mkdir(parents=True)
        self._work = folder / "mcp-work"
        self._work.mkdir()
        self._env = {**env, "HOME": str(self._home)}
        self._model = model
        model.reply = lambda number, body: text_reply()

    def delay_row(self, repeats: int) -> Row:
        """Compare the time until the first request with five broken servers and with none, in turn."""
        broken = {name: {"command": command} for name, command in BROKEN.items()}
        pairs = [(self._first_request_ms({}), self._first_request_ms(broken)) for _ in range(repeats)]
        without, with_broken = (statistics.median(times) for times in zip(*pairs, strict=True))
        delay = with_broken - without
        return (
            "five broken MCP servers, delay of the first request",
            f"{delay:.0f} ms",
            f"{with_broken:.0f} ms instead of {without:.0f} ms; medians of {repeats}",
            _verdict(delay, DELAY_BUDGET_MS, "ms"),
        )

    def _first_request_ms(self, servers: Mapping[str, Any]) -> float:
        self._configure(servers)
        self._model.reset()
        started = time.perf_counter()
        run(self._argv, self._env, str(self._work))
        return (self._model.arrivals[-1] - started) * 1000

    def token_row(self) -> Row:
        servers = {f"server{number}": {"command": self._server(f"server{number}")} for number in range(SERVERS)}
        without = self._request_bytes({})
        self._configure(servers)
        for name in servers:
            subprocess.run(
                [sys.executable, "-P", "-m", "ostler", "mcp", "test", name],
                env=self._env,
                cwd=self._work,
                stdout=subprocess.DEVNULL,
                check=True,
            )
        tokens = (self._request_bytes(servers) - without) / 4
        return (
            f"{SERVERS} MCP servers with {TOOLS_EACH} tools each, first request",
            f"≈ {tokens:,.0f} tokens more",
            f"{self._listed_tokens():,.0f} if all were listed",
            _verdict(tokens, TOKEN_BUDGET, "tokens"),
        )

    def _server(self, name: str) -> list[str]:
        """Return the command of a server with many tools."""
        folder = self._home / name
        folder.mkdir(exist_ok=True)
        (folder / "tools.json").write_text(json.dumps(_tools()))
        command = [sys.executable, "-S", "-E", str(FAKE_SERVER), "--name", name, "--folder", str(folder)]
        return [*command, "--instructions", "Tools of one team, for tests. " * 20]

    def _listed_tokens(self) -> float:
        return SERVERS * len(json.dumps(_tools())) / 4

    def _request_bytes(self, servers: Mapping[str, Any]) -> int:
        self._configure(servers)
        self._model.reset()
        run(self._argv, self._env, str(self._work))
        return len(self._model.requests[0])

    def memory_row(self, repeats: int) -> Row:
        """Compare the peak memory of Ostler, without its children, with three running servers and with none."""
        names = [f"live{number}" for number in range(3)]
        live = {name: {"command": self._server(name), "required": True} for name in names}
        without = statistics.median(self._peak_mb({}) for _ in range(repeats))
        with_live = statistics.median(self._peak_mb(live) for _ in range(repeats))
        started = sum(len((self._home / name / "pids").read_text().split()) for name in names)
        if started != 3 * repeats:
            raise SystemExit(f"{started} servers were started instead of {3 * repeats}")
        return (
            "three running MCP servers, peak RSS",
            f"{with_live - without:.1f} MB more",
            f"{with_live:.1f} MB instead of {without:.1f} MB",
            _verdict(with_live - without, MEMORY_BUDGET_MB, "MB"),
        )

    def _peak_mb(self, servers: Mapping[str, Any]) -> float:
        self._configure(servers)
        self._model.reset()
        peaks: list[float] = []
        pids: list[int] = []
        self._model._on_request = lambda: peaks.append(_peak_of(pids[0]))
        cost = run(self._argv, self._env, str(self._work), pids.append)
        self._model._on_request = None
        if cost.status or not peaks:
            raise SystemExit(f"the run did not end normally (status {cost.status}):\n{cost.output[-2000:]}")
        return peaks[-1]

    def _configure(self, servers: Mapping[str, Any]) -> None:
        (self._home / ".ostler" / "config.json").write_text(json.dumps({"mcp": servers}))


def _tools() -> list[dict[str, Any]]:
    properties = {f"parameter_{number}": {"type": "string", "description": "what it is about"} for number in range(4)}
    schema = {"type": "object", "properties": properties}
    return [
        {"name": f"tool_{number}", "description": f"Does thing {number}.", "inputSchema": schema}
        for number in range(TOOLS_EACH)
    ]


def _peak_of(pid: int) -> float:
    """Return the peak memory of a process while it sends its request, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _verdict(value: float, budget: float, unit: str) -> str:
    return f"{'within' if value <= budget else '**over**'} {budget:g} {unit}"
