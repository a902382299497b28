"""Driving an ACP agent: from the start to its first words, and what each update costs, beside `acpx` where it is."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

UPDATES = 20_000
ECHO = (sys.executable, "-m", "ostler.testing.echo_agent")
FIRST_WORDS = b"agent_message_chunk"


def rows(env: Mapping[str, str], work: Path, repeats: int) -> Iterator[tuple[str, str, str, str]]:
    """Wall time from spawn to the first chunk of the answer, and per update of a long one."""
    ours = _Client(_ostler(work), env, work, repeats)
    peer = _Client(_acpx(), env, work, repeats) if shutil.which("acpx", path=env["PATH"]) else None
    theirs = peer.first_words() if peer else None
    yield ("ACP: spawn → first words", f"{ours.first_words():.0f} ms", _beside(theirs, ours.first_words(), "ms"), "")
    per_update = ours.per_update()
    theirs = peer.per_update() if peer else None
    yield ("ACP: one update of an answer", f"{per_update:.0f} µs", _beside(theirs, per_update, "µs"), "")


def _ostler(work: Path) -> list[str]:
    settings = work / "acp.json"
    settings.write_text(json.dumps({"agent_servers": {"echo": {"command": ECHO[0], "args": ECHO[1:]}}}))
    return [sys.executable, "-P", "-m", "ostler", "acp", "run", "--settings", str(settings), "-o", "jsonl", "--"]


def _acpx() -> list[str]:
    return ["acpx", "--approve-all", "--format", "json", "--agent", " ".join(ECHO), "exec"]


class _Client:
    """A command line that takes a prompt and mirrors frames."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], work: Path, repeats: int) -> None:
        self._argv = argv
        self._env = dict(env)
        self._work = work
        self._repeats = repeats

    def first_words(self) -> float:
        """Milliseconds; the least of several runs, since noise only adds."""
        return min(self._run("hi")[0] for _ in range(self._repeats)) * 1000

    def per_update(self) -> float:
        """Microseconds of the time between the first and the last words."""
        runs = [self._run(f"!updates {UPDATES}") for _ in range(min(self._repeats, 3))]
        return min(last - first for first, last in runs) / UPDATES * 1_000_000

    def _run(self, prompt: str) -> tuple[float, float]:
        """When the first and the last words came, in seconds after the start."""
        begun, first, last = time.perf_counter(), 0.0, 0.0
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        with subprocess.Popen(
            [*self._argv, prompt], env=self._env, cwd=self._work, stdin=nothing, stdout=pipe, stderr=nothing
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if FIRST_WORDS in line:
                    last = time.perf_counter() - begun
                    first = first or last
        if not last:
            raise SystemExit(f"{self._argv[0]} printed no answer (status {process.returncode})")
        return first, last


def _beside(theirs: float | None, ours: float, unit: str) -> str:
    return "no acpx here" if theirs is None else f"{theirs / ours:.1f} × ours with acpx ({theirs:.0f} {unit})"
