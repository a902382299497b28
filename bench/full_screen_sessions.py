"""Long sessions in the full-screen client: appending, opening, scrolling, memory."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.full_screen import READY, SIZE, cpu_seconds, memory_mb, verdict
from bench.sessions import turn_events
from bench.terminal import TerminalProgram
from ostler.core.events import Envelope, MessageDone
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.journal import record_codec
from ostler.journal.file_journal import JOURNAL_NAME

Row = tuple[str, str, str, str]
APPENDING = Path(__file__).parent / "appending_app.py"
MESSAGES, MESSAGES_PER_TURN = 10_000, 20
APPEND_BUDGET, GROWTH_BUDGET, OPEN_BUDGET_MS, MEMORY_BUDGET_MB = 2.0, 1.25, 1000.0, 200.0
PAGES, PAGE_UP, PAGE_BUDGET_MS = 300, b"\x1b[5~", 50.0
LAST = "The end of a long session."


def rows(argv: Sequence[str], env: Mapping[str, str], home: Path, cwd: str, repeats: int) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget. `argv` starts the client."""
    env = {name: value for name, value in env.items() if name != "PYTHONPATH"}
    yield _append_row(env, cwd, repeats)
    _store_session(argv, env, home, cwd)
    yield from _open_rows([*argv, "--resume", "last"], env, cwd, repeats)


def _append_row(env: Mapping[str, str], cwd: str, repeats: int) -> Row:
    """Compare the transcript with a bare widget, at two lengths."""
    tries = range(max(repeats // 3, 2))
    cost = {
        (kind, size): min(_append_cost(kind, size, env, cwd) for _ in tries)
        for kind in ("client", "bare")
        for size in (100, MESSAGES)
    }
    short, long = cost["client", 100], cost["client", MESSAGES]
    ratio, growth = max(short, long) / cost["bare", 100], long / short
    is_within = ratio <= APPEND_BUDGET and growth <= GROWTH_BUDGET
    return (
        "full screen: append to 100 and to 10,000 messages",
        f"{short:.1f} and {long:.1f} ms CPU",
        f"{ratio:.2f} × a bare line widget ({cost['bare', 100]:.1f} and {cost['bare', MESSAGES]:.1f} ms)",
        f"{'within' if is_within else '**over**'} {APPEND_BUDGET:g} ×, the same at both",
    )


def _append_cost(kind: str, size: int, env: Mapping[str, str], cwd: str) -> float:
    with tempfile.NamedTemporaryFile() as result:
        term = TerminalProgram([sys.executable, str(APPENDING), kind, str(size), result.name], env, cwd, SIZE)
        printed = term.read_to_end()
        term.close()
        text = Path(result.name).read_text()
        if not text:
            raise SystemExit(f"no result of {kind}: {printed[-2000:]!r}")
        return float(text)


def _store_session(argv: Sequence[str], env: Mapping[str, str], home: Path, cwd: str) -> None:
    """Make a session and add records to it."""
    command = ["run" if word == "tui" else word for word in argv]
    subprocess.run([*command, "say it"], env=env, cwd=cwd, check=True, capture_output=True)
    journal = max(home.glob(f".ostler/projects/*/sessions/*/{JOURNAL_NAME}"), key=lambda path: path.stat().st_mtime)
    seq = journal.read_bytes().count(b"\n")
    with journal.open("ab") as file:
        for turn in range(MESSAGES // MESSAGES_PER_TURN):
            for event in turn_events(turn, 20):
                seq += 1
                file.write(record_codec.encode(Envelope(seq, 1e9 + seq, event)))
        last = MessageDone(Message("last", (TextContent(LAST),)))
        file.write(record_codec.encode(Envelope(seq + 1, 1e9 + seq + 1, last)))


def _open_rows(argv: Sequence[str], env: Mapping[str, str], cwd: str, repeats: int) -> Iterator[Row]:
    times = []
    for _ in range(repeats):
        term = TerminalProgram(argv, env, cwd, SIZE)
        times.append((term.wait_for(READY), term.wait_for(LAST.encode())))
        term.close()
    total = min(sum(pair) for pair in times)
    yield (
        f"full screen: start and open a session of {MESSAGES:,} messages",
        f"{total:.0f} ms",
        f"{min(pair[1] for pair in times):.0f} ms after the first paint",
        verdict(total, OPEN_BUDGET_MS, "ms"),
    )
    yield from _scroll_rows(argv, env, cwd)


def _scroll_rows(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Iterator[Row]:
    term = TerminalProgram(argv, env, cwd, SIZE)
    try:
        term.wait_for(LAST.encode())
        term.read_for(1.0)
        opened, before = memory_mb(term.process.pid), cpu_seconds(term.process.pid)
        for _ in range(PAGES):
            term.send_keys(PAGE_UP)
            term.read_for(0.02)
        page = 1000 * (cpu_seconds(term.process.pid) - before) / PAGES
        scrolled = memory_mb(term.process.pid)
    finally:
        term.close()
    yield (
        "full screen: scroll by a page in it",
        f"{page:.1f} ms CPU",
        f"average of {PAGES} pages",
        verdict(page, PAGE_BUDGET_MS, "ms"),
    )
    yield (
        "full screen: memory for it",
        f"{opened:.0f} MB",
        f"{scrolled:.0f} MB after {PAGES} pages",
        verdict(max(opened, scrolled), MEMORY_BUDGET_MB, "MB"),
    )
