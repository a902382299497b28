"""The chat in a terminal: time until the prompt, from a key to its echo, to a decision, and to completions."""

import fcntl
import os
import pty
import select
import signal
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
from ostler.workspace.file_index import FileIndex

Row = tuple[str, str, str, str]
TIMEOUT = 60.0
KEY_COUNT = 40
FILE_COUNT = 100_000
ASK_COUNT = 9
IDLE_SECONDS = 2.2  # a key sooner after another one may be part of a text, and waits for Enter or a pause
START_BUDGET, PAINT_BUDGET_MS, ANSWER_BUDGET_MS, FIND_BUDGET_MS = 25.0, 50.0, 150.0, 100.0


class TerminalProgram:
    """A program in a pseudo-terminal."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, size: tuple[int, int] = (80, 24)) -> None:
        self._master, slave = pty.openpty()
        self.resize(*size)
        self.start_time = time.perf_counter()
        terminal = {**env, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            argv,
            env=terminal,
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)

    def wait_for(self, expected: bytes) -> float:
        """Return the milliseconds until a text was printed."""
        started, seen = time.perf_counter(), b""
        while expected not in seen:
            ready, _, _ = select.select([self._master], [], [], TIMEOUT)
            if not ready:
                raise SystemExit(f"never saw {expected!r} in {seen[-500:]!r}")
            seen = seen[-200:] + os.read(self._master, 65536)
        return (time.perf_counter() - started) * 1000

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_for(self, seconds: float) -> bytes:
        """Return what is printed within some time."""
        end, seen = time.perf_counter() + seconds, b""
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._master], [], [], left)[0]:
                seen += os.read(self._master, 65536)
        return seen

    def read_to_end(self) -> bytes:
        """Return what is printed until the program ends."""
        seen = b""
        while True:
            if not select.select([self._master], [], [], TIMEOUT)[0]:
                raise SystemExit(f"the program does not end: {seen[-500:]!r}")
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the terminal is closed
                data = b""
            if not data:
                return seen
            seen += data

    def send_keys(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def close(self) -> float:
        """Kill it and return its CPU time in milliseconds."""
        os.kill(self.process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        os.close(self._master)
        return (usage.ru_utime + usage.ru_stime) * 1000


def _take_terminal() -> None:
    """Make standard input the controlling terminal, which signals changes of its size."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def rows(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel, repeats: int) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget."""
    starts = [_measure_start(argv, env, cwd) for _ in range(repeats)]
    base = min(run([sys.executable, "-c", "pass"], env, cwd).cpu_ms for _ in range(repeats))
    cpu, wall = min(cpu for _, cpu in starts), min(wall for wall, _ in starts)
    verdict = "within" if cpu / base <= START_BUDGET else "**over**"
    comparison_text = f"{cpu / base:.1f} × `python -c pass`; {wall:.0f} ms wall time"
    yield ("start until prompt", f"{cpu:.0f} ms CPU", comparison_text, f"{verdict} {START_BUDGET:g} ×")
    paints = _key_echo_times(argv, env, cwd, model)
    worst = f"median of {KEY_COUNT} keys; the slowest {max(paints):.0f} ms"
    yield _row("key until echo while text streams", statistics.median(paints), worst, PAINT_BUDGET_MS)
    answers = _ask_answer_times(argv, env, cwd, model)
    worst = f"median of {ASK_COUNT} requests; the slowest {max(answers):.0f} ms"
    yield _row(
        "key until its effect is shown in an approval request", statistics.median(answers), worst, ANSWER_BUDGET_MS
    )
    yield _find_row()


def _measure_start(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> tuple[float, float]:
    """Return wall time and CPU time in milliseconds."""
    term = TerminalProgram(argv, env, cwd)
    wall = term.wait_for(b"opening the session")  # from here on, keys are accepted
    return wall, term.close()


def _key_echo_times(argv: Sequence[str], env: Mapping[str, str], cwd: str, model: MockModel) -> list[float]:
    """Measure the time until a key is echoed; the streamed text does not contain these letters."""
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
    """Measure the time from the key of an idle user that denies a call until its effect is shown.

    The call is denied a moment later, if no other key follows: the key could be the start of a text.
    """
    model.reply = lambda number, body: call_reply(number, "write", {"path": f"{number}.txt", "content": "x"})
    term = TerminalProgram(argv, env, cwd)
    try:
        term.wait_for(b"context empty")
        term.send_keys(b"write\r")
        answers = []
        for _ in range(ASK_COUNT):
            term.wait_for(b"allow? [")
            time.sleep(IDLE_SECONDS)
            term.send_keys(b"n")
            answers.append(term.wait_for("n: Deny …".encode()))
            term.wait_for("→ deny".encode())
        return answers
    finally:
        term.close()
        model.reply = lambda number, body: text_reply()


def _endless_reply(number: int, body: dict[str, Any]) -> Iterator[bytes]:
    """Reply with lines without capital letters, as fast as a fast model."""
    for _ in range(100_000):
        time.sleep(0.005)
        yield frame({"content": "ab ab ab ab\n"})


def _find_row() -> Row:
    """Measure the time until the first completions of `@` in a tree that is not indexed yet."""
    with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
        for number in range(FILE_COUNT // 100):
            place = Path(folder) / f"part-{number // 50}" / f"folder-{number}"
            place.mkdir(parents=True)
            for file in range(100):
                (place / f"file-{file}.txt").touch()
        index = FileIndex(folder)
        started = time.perf_counter()
        index.refresh()
        while not index.find("part"):
            time.sleep(0.001)
        first = (time.perf_counter() - started) * 1000
        index.complete.wait()
        whole = (time.perf_counter() - started) * 1000
        started = time.perf_counter()
        index.find("p9fold950fi7")
        scattered = (time.perf_counter() - started) * 1000
    comparison_text = f"index complete after {whole:.0f} ms; fuzzy search {scattered:.0f} ms"
    return _row(f"first completions among {FILE_COUNT:,} files", first, comparison_text, FIND_BUDGET_MS)


def _row(name: str, value: float, comparison: str, budget: float) -> Row:
    verdict = "within" if value <= budget else "**over**"
    return (name, f"{value:.0f} ms", comparison, f"{verdict} {budget:g} ms")
