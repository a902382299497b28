"""The report of `./run bench`: ratios to `python -c pass` and to a minimal agent, with budgets."""

import os
import platform
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from bench import (
    acp,
    engine,
    full_screen,
    mcp,
    server,
    sessions,
    streams,
    terminal,
    tools,
    undo_growth,
    workspace,
    xnl_scan,
)
from bench.measure import RunCost, median, run
from bench.mock_model import FINAL, MockModel, call_reply, long_reply, text_reply

HERE = Path(__file__).parent
JOBS_HEADING = "## Results of `./run bench jobs`"
CALLS = 10
BUDGETS = {"--version": 2.0, "--help": 3.0, "first request": 15.0}
RSS_BUDGET_MB = 60.0
Row = tuple[str, str, str, str]
PEERS = ("opencode", "codex", "gemini", "qwen", "claude", "kimi", "vibe", "aider", "llm", "mini", "goose", "crush")


class BenchRun:
    """All measurements, in a temporary home and workspace."""

    def __init__(self, scratch: Path, repeats: int) -> None:
        self.home, self.work = scratch / "home", scratch / "work"
        self.home.mkdir()
        self.work.mkdir()
        for number in range(1, CALLS + 1):
            (self.work / f"f{number}.txt").write_text(f"this is file {number}\n")
        self.repeats = repeats
        self.model = MockModel()
        installed = str(HERE / "as_installed")  # hides packages that only development tools install
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "dumb", "PYTHONPATH": installed}
        self.ostler = [sys.executable, "-P", "-m", "ostler"]
        flags = ["--base-url", self.model.base_url, "--model", "mock", "--api-key", "x", "--allow", "bash:cat *"]
        self.prompt = [*self.ostler, "run", *flags, "say it"]
        self.chat = [*self.ostler, "chat", *flags]
        self.full_screen = [*self.ostler, "tui", *flags]
        self.floor = [sys.executable, str(HERE / "floor_agent.py"), self.model.base_url, "say it"]

    def run_repeated(self, argv: list[str], *, until_request: bool = False) -> RunCost:
        return median([self.run_once(argv, until_request=until_request) for _ in range(self.repeats)])

    def run_once(self, argv: list[str], *, until_request: bool) -> RunCost:
        """Run once; `until_request` kills the program at its first request, to measure the CPU time until then."""
        self.model.reset()
        pids: list[int] = []
        self.model._on_request = (lambda: os.kill(pids[0], signal.SIGKILL)) if until_request else None
        cost = run(argv, self.env, str(self.work), pids.append)
        self.model._on_request = None
        return cost

    def measure_calls(self, argv: list[str]) -> RunCost:
        self.model.reply = ten_call_reply
        return self._require_final(self.run_repeated(argv))

    def measure_stream(self, argv: list[str]) -> RunCost:
        self.model.reply = lambda number, body: long_reply()
        return self._require_final(self.run_repeated(argv))

    def measure_line(self, argv: list[str]) -> RunCost:
        self.model.reply = lambda number, body: text_reply()
        return self._require_final(self.run_repeated(argv))

    def _require_final(self, cost: RunCost) -> RunCost:
        if FINAL not in cost.output:
            raise SystemExit(f"the run did not end normally (status {cost.status}):\n{cost.output[-2000:]}")
        return cost


def ten_call_reply(number: int, body: dict[str, Any]) -> Iterator[bytes]:
    """Reply with ten shell calls, then a line."""
    return call_reply(number, "bash", {"command": f"cat f{number}.txt"}) if number <= CALLS else text_reply()


def rows(bench: BenchRun) -> Iterator[tuple[str, str, str, str]]:
    base = bench.run_repeated([sys.executable, "-c", "pass"]).cpu_ms
    for flag in ("--version", "--help"):
        yield _ratio_row(flag, bench.run_repeated([*bench.ostler, flag]), base, BUDGETS[flag])
    first = bench.run_repeated(bench.prompt, until_request=True)
    yield _ratio_row("spawn → first model request", first, base, BUDGETS["first request"])
    floor_first = bench.run_repeated(bench.floor, until_request=True)
    yield _ratio_row("· same, minimal agent", floor_first, base, None)
    ours, floor = bench.measure_line(bench.prompt), bench.measure_line(bench.floor)
    yield (
        "one line, peak RSS",
        f"{ours.rss_mb:.0f} MB",
        f"{floor.rss_mb:.0f} MB minimal agent",
        _budget_verdict(ours.rss_mb, RSS_BUDGET_MB, "MB"),
    )
    bench.measure_line(bench.prompt)
    request = len(bench.model.requests[0])
    yield ("first request", f"{request:,} bytes", f"≈ {request // 4:,} tokens", "")
    ours_calls, floor_calls = bench.measure_calls(bench.prompt), bench.measure_calls(bench.floor)
    yield _comparison_row(
        "ten shell calls, wall time", ours_calls.wall_ms - ours.wall_ms, floor_calls.wall_ms - floor.wall_ms
    )
    bench.measure_calls(bench.prompt)
    yield _prefix_row(bench.model.requests)
    ours_long, floor_long = bench.measure_stream(bench.prompt), bench.measure_stream(bench.floor)
    yield _comparison_row(
        "200 KB in 51,200 pieces, CPU", ours_long.cpu_ms - ours.cpu_ms, floor_long.cpu_ms - floor.cpu_ms
    )


def model_rows(repeats: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows on reading a model's reply."""
    yield from streams.rows(repeats)
    yield from xnl_scan.rows(repeats)


def _prefix_row(requests: list[bytes]) -> tuple[str, str, str, str]:
    """Return how many requests of a turn start with all messages of the previous one."""
    sent = [body[body.index(b'"messages":') :].rstrip(b"]}") for body in requests]
    unchanged = sum(later.startswith(earlier) for earlier, later in pairwise(sent))
    share = 100 * unchanged / max(1, len(sent) - 1)
    verdict = "within 100 %" if share == 100 else "**over** 100 %"
    return (
        f"unchanged prefix over {CALLS} calls",
        f"{share:.0f} %",
        f"{unchanged} of {len(sent) - 1} requests",
        verdict,
    )


def peer_rows(bench: BenchRun) -> Iterator[tuple[str, str, str, str]]:
    """Compare with `--version` of other coding agents on this machine."""
    ours = bench.run_repeated([*bench.ostler, "--version"]).cpu_ms
    for name in PEERS:
        if program := shutil.which(name):
            theirs = bench.run_repeated([program, "--version"]).cpu_ms
            yield (f"{name} --version", f"{ours:.0f} ms CPU", f"{theirs / ours:.1f} × ours ({theirs:.0f} ms)", "")


def _ratio_row(name: str, cost: RunCost, base: float, budget: float | None) -> tuple[str, str, str, str]:
    ratio = cost.cpu_ms / base
    return (
        name,
        f"{cost.cpu_ms:.0f} ms CPU",
        f"{ratio:.1f} × `python -c pass`",
        _budget_verdict(ratio, budget, "×") if budget else "",
    )


def _budget_verdict(value: float, budget: float, unit: str) -> str:
    return f"{'within' if value <= budget else '**over**'} {budget:g} {unit}"


def _comparison_row(name: str, ours: float, floor: float) -> tuple[str, str, str, str]:
    return (name, f"{ours:.0f} ms", f"{ours / max(floor, 0.1):.1f} × a minimal agent ({floor:.0f} ms)", "")


def main(arguments: list[str]) -> int:
    """Print the table. Return 1 if a budget is exceeded."""
    repeats = 3 if "--quick" in arguments else 9
    undo_only = "--undo" in arguments
    lines = [
        f"Python {platform.python_version()}, {os.cpu_count()} cores; CPU is the minimum of {repeats} runs.",
        "",
        "| measurement | Ostler | comparison | budget |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory(prefix="ostler-bench-") as scratch:
        bench = BenchRun(Path(scratch), repeats)
        large = "--large" in arguments
        sizes = (5_000, 50_000, 500_000) if large else (5_000, 50_000)
        groups = (
            rows(bench),
            workspace.rows(),
            undo_growth.rows(sizes),
            sessions.rows(large=large),
            tools.rows(repeats),
            engine.rows(repeats),
            terminal.rows(bench.chat, bench.env, str(bench.work), bench.model, repeats),
        )
        servers = mcp.rows(bench.prompt, bench.env, Path(scratch), bench.model, repeats)
        agents = acp.rows(bench.env, bench.work, repeats)
        all_groups: tuple[Iterator[Row], ...] = (*groups, servers, model_rows(repeats), agents, peer_rows(bench))
        screen = full_screen.rows(bench.full_screen, bench.env, str(bench.work), bench.model, repeats)
        load = (row for _ in range(1) for row in server.rows(bench.ostler, bench.env, str(bench.work)))
        only = {"--mcp": servers, "--tui": screen, "--server": load}
        chosen = tuple(group for flag, group in only.items() if flag in arguments)
        all_groups = chosen or (*all_groups, screen, load)
        for row in chain.from_iterable([undo_growth.rows(sizes)] if undo_only else all_groups):
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], file=sys.stderr)
    text = "\n".join(lines) + "\n"
    print(text)
    if "--keep" in arguments and not undo_only and not chosen:
        results = HERE / "RESULTS.md"
        _, heading, jobs = results.read_text(encoding="utf-8").partition(JOBS_HEADING)
        results.write_text(f"# Results of `./run bench`\n\n{text}\n{heading}{jobs}", encoding="utf-8")
    return 1 if "**over**" in text else 0
