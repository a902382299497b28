"""Running an ACP agent: the time until its first words, and the time per update.

Both are ratios to a minimal client, measured in the same run, and are compared with `acpx` if it is on the path or can
be installed with npm in the folder that `OSTLER_INTEROP` names.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

UPDATES = 20_000
FIRST_CHUNK_BUDGET = 2.5
UPDATE_BUDGET = 2.0
HERE = Path(__file__).parent
ACPX_PACKAGES = ("acpx@0.19", "node@24")
MakeCommand = Callable[[str], list[str]]
ECHO = (sys.executable, "-m", "ostler.testing.echo_agent")
FIRST_CHUNK = b"agent_message_chunk"


def rows(env: Mapping[str, str], work: Path, repeats: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield the wall time from spawn to the first chunk of the answer, and per update of a long answer."""
    acpx = _acpx_command(env["PATH"])
    ours, floor = (
        _BenchClient(_ostler_command(work), env, work, repeats),
        _BenchClient(_floor_command, env, work, repeats),
    )
    peer = _BenchClient(acpx, env, work, repeats) if acpx else None
    first_words = (ours.first_chunk_ms(), floor.first_chunk_ms(), peer.first_chunk_ms() if peer else None)
    yield _row("ACP: spawn → first words", *first_words, "ms", FIRST_CHUNK_BUDGET)
    updates = (ours.update_us(), floor.update_us(), peer.update_us() if peer else None)
    yield _row("ACP: one update of an answer", *updates, "µs", UPDATE_BUDGET)


def _ostler_command(work: Path) -> MakeCommand:
    settings = work / "acp.json"
    settings.write_text(json.dumps({"agent_servers": {"echo": {"command": ECHO[0], "args": ECHO[1:]}}}))
    command = [sys.executable, "-P", "-m", "ostler", "acp", "run", "--settings", str(settings), "-o", "jsonl", "--"]
    return lambda prompt: [*command, prompt]


def _floor_command(prompt: str) -> list[str]:
    return [sys.executable, str(HERE / "floor_client.py"), prompt, *ECHO]


def _acpx_command(path: str) -> MakeCommand | None:
    program = shutil.which("acpx", path=path)
    found = [program] if program else _install_acpx()
    flags = ["--approve-all", "--format", "json", "--agent", " ".join(ECHO), "exec"]
    return (lambda prompt: [*found, *flags, prompt]) if found else None


def _install_acpx() -> list[str]:
    """Install acpx next to the clients of the interop tests, if `OSTLER_INTEROP` is set."""
    folder = os.environ.get("OSTLER_INTEROP")
    if not folder:
        return []
    place = Path(folder) / "editors"
    node, program = (place / "node_modules" / ".bin" / name for name in ("node", "acpx"))
    if not program.exists() and (npm := shutil.which("npm")):
        install = [npm, "install", "--prefix", str(place), "--no-audit", "--no-fund", *ACPX_PACKAGES]
        subprocess.run(install, capture_output=True, check=False)
    return [str(node), str(program)] if program.exists() else []


class _BenchClient:
    """A command that takes a prompt and prints frames."""

    def __init__(self, command: MakeCommand, env: Mapping[str, str], work: Path, repeats: int) -> None:
        self._command = command
        self._env = dict(env)
        self._work_dir = work
        self._repeats = repeats

    def first_chunk_ms(self) -> float:
        """Return milliseconds; the minimum of several runs, because noise only adds."""
        return min(self._run("hi")[0] for _ in range(self._repeats)) * 1000

    def update_us(self) -> float:
        """Return microseconds per update, between the first and the last one."""
        runs = [self._run(f"!updates {UPDATES}") for _ in range(min(self._repeats, 3))]
        return min(last - first for first, last in runs) / UPDATES * 1_000_000

    def _run(self, prompt: str) -> tuple[float, float]:
        """Return when the first and the last words arrived, in seconds after the start."""
        started, first, last = time.perf_counter(), 0.0, 0.0
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        with subprocess.Popen(
            self._command(prompt), env=self._env, cwd=self._work_dir, stdin=nothing, stdout=pipe, stderr=nothing
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if FIRST_CHUNK in line:
                    last = time.perf_counter() - started
                    first = first or last
        if not last:
            raise SystemExit(f"{self._command(prompt)} printed no answer (status {process.returncode})")
        return first, last


def _row(
    name: str, ours: float, floor: float, theirs: float | None, unit: str, budget: float
) -> tuple[str, str, str, str]:
    ratio = ours / floor
    acpx = "acpx not installed" if theirs is None else f"acpx {theirs / ours:.1f} × ours ({theirs:.0f} {unit})"
    verdict = f"{'within' if ratio <= budget else '**over**'} {budget:g} ×"
    return (name, f"{ours:.0f} {unit}", f"{ratio:.1f} × a minimal client ({floor:.0f} {unit}); {acpx}", verdict)
