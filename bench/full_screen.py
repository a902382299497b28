"""The full-screen client in a terminal: first paint, typing, bytes, resizes, idle CPU, memory, long sessions."""

import os
import re
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.mock_model import MockModel, frame, text_reply
from bench.terminal import KEY_COUNT, TerminalProgram

Row = tuple[str, str, str, str]
SIZE = (200, 50)
READY = b"Type what you want done."
BARE_APP = """
from textual.app import App
from textual.widgets import Static, TextArea
class Bare(App):
    def compose(self):
        yield Static("bare and ready")
        yield TextArea()
Bare().run()
"""
LINE = "some words of line {:06} that a model could write, about as long as the lines of most answers are"
START_BUDGET, PAINT_BUDGET_MS, KEY_BYTES, LINE_BYTES = 1.5, 50.0, 200, 3.0
IDLE_SECONDS, IDLE_BUDGET, RESIZES, STREAM_SECONDS = 5.0, 1.0, 200, 4.0
_sent: list[int] = []  # one item for each line that was sent


def rows(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel, repeats: int) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget. `argv` starts the client."""
    env = {name: value for name, value in env.items() if name != "PYTHONPATH"}  # Textual needs all its packages
    yield _start_row(argv, env, cwd, repeats)
    yield from _idle_rows(argv, env, cwd)
    yield from _stream_rows(argv, env, cwd, model)
    yield _resize_row(argv, env, cwd, model)


def _start_row(argv: Sequence[str], env: Mapping[str, str], cwd: str, repeats: int) -> Row:
    ours = min(_first_paint(argv, env, cwd, READY) for _ in range(repeats))
    bare = min(_first_paint([sys.executable, "-c", BARE_APP], env, cwd, b"bare and ready") for _ in range(repeats))
    verdict = _verdict(ours / bare, START_BUDGET, "×")
    return ("full screen: first paint", f"{ours:.0f} ms", f"{ours / bare:.2f} × a bare Textual app", verdict)


def _first_paint(argv: Sequence[str], env: Mapping[str, str], cwd: str, expected: bytes) -> float:
    term = TerminalProgram(argv, env, cwd, SIZE)
    try:
        return term.wait_for(expected)
    finally:
        term.close()


def _idle_rows(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Iterator[Row]:
    term = TerminalProgram(argv, env, cwd, SIZE)
    try:
        term.wait_for(b"ready")
        term.read_for(2.0)
        before = _cpu_seconds(term.process.pid)
        term.read_for(IDLE_SECONDS)
        share = 100 * (_cpu_seconds(term.process.pid) - before) / IDLE_SECONDS
        yield (
            "full screen: idle CPU",
            f"{share:.1f} %",
            f"{_memory_mb(term.process.pid):.0f} MB memory",
            _verdict(share, IDLE_BUDGET, "%"),
        )
        sizes = []
        for key in b"qwertzuiop":
            term.send_keys(bytes([key]))
            sizes.append(len(term.read_for(0.2)))
        size = statistics.median(sizes)
        yield (
            "full screen: bytes for the echo of a key",
            f"{size:.0f} B",
            f"at most {max(sizes)} B, at 200 × 50",
            _verdict(size, KEY_BYTES, "B"),
        )
    finally:
        term.close()


def _stream_rows(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel) -> Iterator[Row]:
    model.reply = _streamed_lines
    term = TerminalProgram(argv, env, cwd, SIZE)
    try:
        term.wait_for(b"ready")
        term.send_keys(b"talk\r")
        term.wait_for(b"some words")
        paints = []
        for number in range(KEY_COUNT):
            key = b"QWERTYUIOPSDFGHJKLZXCVBNM"[number % 25 : number % 25 + 1]
            term.send_keys(key)
            paints.append(term.wait_for(key))
            time.sleep(0.02)
        worst = f"median of {KEY_COUNT} keys; the slowest {max(paints):.0f} ms"
        yield (
            "full screen: key until echo while text streams",
            f"{statistics.median(paints):.0f} ms",
            worst,
            _verdict(max(paints), PAINT_BUDGET_MS, "ms"),
        )
        _sent.clear()
        printed = len(term.read_for(STREAM_SECONDS))
        ratio = printed / max(len(_sent) * len(LINE.format(0)), 1)
        yield (
            "full screen: bytes for a streamed line",
            f"{ratio:.1f} × its text",
            f"{printed // 1024:,} KB in all",
            _verdict(ratio, LINE_BYTES, "×"),
        )
    finally:
        term.close()
        model.reply = lambda number, body: text_reply()


def _resize_row(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel) -> Row:
    """Resize during a stream, then measure how long a key takes: nothing may have piled up."""
    model.reply = _streamed_lines
    term = TerminalProgram(argv, env, cwd, SIZE)
    try:
        term.wait_for(b"ready")
        term.send_keys(b"talk\r")
        term.wait_for(b"some words")
        before = _cpu_seconds(term.process.pid)
        for number in range(RESIZES):
            term.resize(60 + number * 7 % 140, 15 + number * 5 % 35)
            term.read_for(0.01)
        cpu = 1000 * (_cpu_seconds(term.process.pid) - before) / RESIZES
        term.send_keys(b"Q")
        echo = term.wait_for(b"Q")
    finally:
        term.close()
        model.reply = lambda number, body: text_reply()
    return (
        f"full screen: {RESIZES} resizes during a stream, then a key",
        f"{echo:.0f} ms",
        f"{cpu:.0f} ms CPU for each resize",
        _verdict(echo, PAINT_BUDGET_MS, "ms"),
    )


def _streamed_lines(number: int, body: dict[str, Any]) -> Iterator[bytes]:
    for line in range(100_000):
        time.sleep(0.02)
        _sent.append(line)
        yield frame({"content": f"{LINE.format(line * 7919 % 999_983)}\n\n"})


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _verdict(value: float, budget: float, unit: str) -> str:
    return f"{'within' if value <= budget else '**over**'} {budget:g} {unit}"
