"""Benchmarks of the line client in a terminal: start to prompt, and key press to echo while text streams."""

import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure import run
from bench.mock_model import MockModel, call_reply, frame, text_reply
from ostler.app.file_index import FileIndex

Row = tuple[str, str, str, str]
TIMEOUT = 60.0
KEY_COUNT = 40
FILE_COUNT = 100_000
ASK_COUNT = 9
START_BUDGET, PAINT_BUDGET_MS, ANSWER_BUDGET_MS, FIND_BUDGET_MS = 25.0, 50.0, 150.0, 100.0


class TerminalProgram:
    """A program on a pseudo-terminal."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.start_time = time.perf_counter()
        terminal = {**env, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            argv, env=terminal, cwd=cwd, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def wait_for(self, expected: bytes) -> float:
        """Wait until `expected` is printed. Return the milliseconds."""
        started, output = time.perf_counter(), b""
        while expected not in output:
            ready, _, _ = select.select([self._master], [], [], TIMEOUT)
            if not ready:
                raise SystemExit(f"never saw {expected!r} in {output[-500:]!r}")
            output = output[-200:] + os.read(self._master, 65536)
        return (time.perf_counter() - started) * 1000

    def send_keys(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def close(self) -> float:
        """Kill the program. Return its CPU time in milliseconds."""
        self.process.kill()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        os.close(self._master)
        return (usage.ru_utime + usage.ru_stime) * 1000


def rows(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel, repeats: int) -> Iterator[Row]:
    """Yield Markdown rows: name, Ostler, comparison, budget."""
    starts = [_measure_start(argv, env, cwd) for _ in range(repeats)]
    base = min(run([sys.executable, "-c", "pass"], env, cwd).cpu_ms for _ in range(repeats))
    cpu, wall = min(cpu for _, cpu in starts), min(wall for wall, _ in starts)
    verdict = "within" if cpu / base <= START_BUDGET else "**over**"
    comparison = f"{cpu / base:.1f} × `python -c pass`; {wall:.0f} ms by the clock"
    yield ("start to prompt", f"{cpu:.0f} ms CPU", comparison, f"{verdict} {START_BUDGET:g} ×")
    paints = _key_echo_times(argv, env, cwd, model)
    worst = f"median of {KEY_COUNT} keys; the slowest {max(paints):.0f} ms"
    yield _row("key to letter while text streams", statistics.median(paints), worst, PAINT_BUDGET_MS)
    answers = _ask_answer_times(argv, env, cwd, model)
    worst = f"median of {ASK_COUNT} asks; the slowest {max(answers):.0f} ms"
    yield _row("key to decision in an ask", statistics.median(answers), worst, ANSWER_BUDGET_MS)
    yield _find_row()


def _measure_start(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> tuple[float, float]:
    """Return wall time and CPU time in milliseconds."""
    term = TerminalProgram(argv, env, cwd)
    wall = term.wait_for(b"opening the session")  # input is accepted from here on
    return wall, term.close()


def _key_echo_times(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel) -> list[float]:
    """Return the milliseconds from each key press to its echo. The keys do not occur in the streamed text."""
    model.reply = _endless_reply
    term = TerminalProgram(argv, env, cwd)
    try:
        term.wait_for(b"context empty")
        term.send_keys(b"talk\r")
        term.wait_for(b"ab ab")
        paints = []
        for number in range(KEY_COUNT):
            key = b"QWERTYUIOPSDFGHJKLZXCVBNM"[number % 25 : number % 25 + 1]
            term.send_keys(key)
            paints.append(term.wait_for(key))
            time.sleep(0.02)
        return paints
    finally:
        term.close()
        model.reply = lambda number, body: text_reply()


def _ask_answer_times(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel) -> list[float]:
    """Return the milliseconds from each denying key press to the printed decision. Each request is for another file."""
    model.reply = lambda number, body: call_reply(number, "write", {"path": f"{number}.txt", "content": "x"})
    term = TerminalProgram(argv, env, cwd)
    try:
        term.wait_for(b"context empty")
        term.send_keys(b"write\r")
        answers = []
        for _ in range(ASK_COUNT):
            term.wait_for(b"allow? [")
            time.sleep(0.2)
            term.send_keys(b"n")
            answers.append(term.wait_for("→ deny".encode()))
        return answers
    finally:
        term.close()
        model.reply = lambda number, body: text_reply()


def _endless_reply(number: int, body: dict[str, Any]) -> Iterator[bytes]:
    """Reply with lower-case lines at the speed of a fast model."""
    for _ in range(100_000):
        time.sleep(0.005)
        yield frame({"content": "ab ab ab ab\n"})


def _find_row() -> Row:
    """Return the row for the first candidates of `@` in a tree that is not indexed yet."""
    with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
        for number in range(FILE_COUNT // 100):
            part_dir = Path(folder) / f"part-{number // 50}" / f"folder-{number}"
            part_dir.mkdir(parents=True)
            for file in range(100):
                (part_dir / f"file-{file}.txt").touch()
        index = FileIndex(folder)
        started = time.perf_counter()
        index.refresh()
        while not index.find("part"):
            time.sleep(0.001)
        first = (time.perf_counter() - started) * 1000
        index.complete.wait()
        complete = (time.perf_counter() - started) * 1000
        started = time.perf_counter()
        index.find("p9fold950fi7")
        scattered = (time.perf_counter() - started) * 1000
    comparison = f"all known after {complete:.0f} ms, then any letters in {scattered:.0f} ms"
    return _row(f"first candidates among {FILE_COUNT:,} files", first, comparison, FIND_BUDGET_MS)


def _row(name: str, value: float, comparison: str, budget: float) -> Row:
    verdict = "within" if value <= budget else "**over**"
    return (name, f"{value:.0f} ms", comparison, f"{verdict} {budget:g} ms")
