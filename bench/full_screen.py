"""The full-screen client in a terminal: first paint, idle CPU, typing, bytes and resizes during a stream."""

import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.mock_model import MockModel, frame, text_reply
from bench.terminal import TerminalProgram

Row = tuple[str, str, str, str]
Reply = Callable[[int, dict[str, Any]], Iterator[bytes]]
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
KEYS = "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ"  # not in the text, and not in escape sequences
KEY_COUNT, CHUNKS_PER_SECOND = 200, 1_000
IDLE_SECONDS, IDLE_BUDGET, RESIZES, STREAM_SECONDS = 5.0, 1.0, 200, 4.0
_sent: list[int] = []  # one item for each line that was sent


def rows(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel, repeats: int) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget. `argv` starts the client."""
    env = {name: value for name, value in env.items() if name != "PYTHONPATH"}  # Textual needs all its packages
    yield _start_row(argv, env, cwd, repeats)
    yield from _idle_rows(argv, env, cwd)
    yield _typing_row(argv, env, cwd, model)
    yield _bytes_row(argv, env, cwd, model)
    yield from _resize_rows(argv, env, cwd, model)


def _start_row(argv: Sequence[str], env: Mapping[str, str], cwd: str, repeats: int) -> Row:
    ours, bare = [], []
    for _ in range(repeats):
        ours.append(_first_paint(argv, env, cwd, READY))
        bare.append(_first_paint([sys.executable, "-c", BARE_APP], env, cwd, b"bare and ready"))
    ratio = min(ours) / min(bare)
    comparison = f"{ratio:.2f} × a bare Textual app"
    return ("full screen: first paint", f"{min(ours):.0f} ms", comparison, verdict(ratio, START_BUDGET, "×"))


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
        before = cpu_seconds(term.process.pid)
        term.read_for(IDLE_SECONDS)
        share = 100 * (cpu_seconds(term.process.pid) - before) / IDLE_SECONDS
        yield (
            "full screen: idle CPU",
            f"{share:.1f} %",
            f"{memory_mb(term.process.pid):.0f} MB memory",
            verdict(share, IDLE_BUDGET, "%"),
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
            verdict(size, KEY_BYTES, "B"),
        )
    finally:
        term.close()


@contextmanager
def _streaming(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel, reply: Reply
) -> Iterator[TerminalProgram]:
    """Yield the client while it shows a reply that does not end."""
    model.reply = reply
    term = TerminalProgram(argv, env, cwd, SIZE)
    try:
        term.wait_for(b"ready")
        term.send_keys(b"talk\r")
        term.wait_for(b"some words")
        yield term
    finally:
        term.close()
        model.reply = lambda number, body: text_reply()


def _typing_row(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel) -> Row:
    with _streaming(argv, env, cwd, model, _many_chunks) as term:
        _sent.clear()
        started, paints = time.perf_counter(), []
        for number in range(KEY_COUNT):
            key = KEYS[number % len(KEYS)].encode()
            term.send_keys(key)
            paints.append(term.wait_for(key))
            term.send_keys(b"\x7f")
            term.read_for(0.02)
        rate = len(_sent) / (time.perf_counter() - started)
    slow = sorted(paints)[int(KEY_COUNT * 0.99) - 1]
    return (
        "full screen: key until echo during a fast stream, p99",
        f"{slow:.0f} ms",
        f"{rate:,.0f} chunks a second; median {statistics.median(paints):.0f} ms, slowest {max(paints):.0f} ms",
        verdict(slow, PAINT_BUDGET_MS, "ms"),
    )


def _bytes_row(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel) -> Row:
    with _streaming(argv, env, cwd, model, _streamed_lines) as term:
        term.read_for(1.5)  # until the window is full
        _sent.clear()
        printed = len(term.read_for(STREAM_SECONDS))
        ratio = printed / max(len(_sent) * len(LINE.format(0)), 1)
    return (
        "full screen: bytes for a streamed line",
        f"{ratio:.2f} × its text",
        f"{len(_sent)} lines of {len(LINE.format(0))} characters, at 200 × 50",
        verdict(ratio, LINE_BYTES, "×"),
    )


def _resize_rows(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel) -> Iterator[Row]:
    """Resize during a stream, then measure how long a key takes: nothing may have piled up."""
    for name, reply in (("a stream", _streamed_lines), ("a reply of 10,000 lines", _long_reply)):
        with _streaming(argv, env, cwd, model, reply) as term:
            term.read_for(2.0)
            before = cpu_seconds(term.process.pid)
            for number in range(RESIZES):
                term.resize(60 + number * 7 % 140, 15 + number * 5 % 35)
                term.read_for(0.01)
            cpu = 1000 * (cpu_seconds(term.process.pid) - before) / RESIZES
            term.send_keys(KEYS[0].encode())
            echo = term.wait_for(KEYS[0].encode())
        yield (
            f"full screen: {RESIZES} resizes during {name}, then a key",
            f"{echo:.0f} ms",
            f"{cpu:.0f} ms CPU for each resize",
            verdict(echo, PAINT_BUDGET_MS, "ms"),
        )


def _many_chunks(number: int, body: dict[str, Any]) -> Iterator[bytes]:
    """Reply with 1,000 chunks a second, each as long as a token."""
    yield frame({"content": "some words\n\n"})
    started = time.perf_counter()
    for chunk in range(10**9):
        early = started + chunk / CHUNKS_PER_SECOND - time.perf_counter()
        if early > 0:
            time.sleep(early)
        _sent.append(chunk)
        end = "\n\n" if chunk % 20 == 19 else " "
        yield frame({"content": f"{chunk * 7919 % 99_991:05}{end}"})


def _streamed_lines(number: int, body: dict[str, Any]) -> Iterator[bytes]:
    for line in range(100_000):
        time.sleep(0.02)
        _sent.append(line)
        yield frame({"content": f"{LINE.format(line * 7919 % 999_983)}\n\n"})


def _long_reply(number: int, body: dict[str, Any]) -> Iterator[bytes]:
    """Reply with many lines at once, then slowly with more."""
    yield frame({"content": "".join(f"{LINE.format(line)}\n\n" for line in range(5_000))})
    yield from _streamed_lines(number, body)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def verdict(value: float, budget: float, unit: str) -> str:
    """Return the last cell of a row."""
    return f"{'within' if value <= budget else '**over**'} {budget:g} {unit}"
