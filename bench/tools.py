"""Tools: searches compared with ripgrep and git, changes of a large file, the size of the schemas.

Budgets apply to CPU time, because wall time depends on the load of the machine; it is shown in addition.
"""

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.measure import RunCost, run
from bench.tool_calls import open_tool_session
from bench.workspace import Row
from ostler.app.tool_host import builtin_tools
from ostler.core.tools import ToolCall
from ostler.settings.load import load
from ostler.tools import search

ROOT = Path(__file__).parents[1]
FILE_COUNT = 20_000
WORDS = ("alpha", "beta", "gamma", "delta", "raise", "return", "import", "class", "value", "index", "self", "None")
RATIO_BUDGET, SECONDS_BUDGET, TOKEN_BUDGET = 1.3, 1.0, 2_500
START_MS = 15  # CPU milliseconds for supervising a process and for the permission check of a call
QUERIES = {"few hits": "raise ValueError", "thousands of hits": "alpha beta self"}
GLOBS = {"some": "**/f7.py", "all": "**/*.py"}
LINE = "the quick line number {} of a large file, as ordinary as the one before it\n"


class CallCost(msgspec.Struct):
    """The cost of one run or call: CPU time and wall time in milliseconds."""

    cpu: float
    wall: float
    summary: str = ""


def rows(repeats: int) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget."""
    with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
        root = Path(folder) / "tree"
        _make_tree(root)
        yield from _search_rows(root, repeats)
        yield from _cold_rows(root, Path(folder))
    with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
        yield from asyncio.run(_change_rows(Path(folder), repeats))
    yield _schema_row()


def _make_tree(root: Path) -> None:
    """Create a repository with 20,000 small files and a .gitignore."""
    rand = random.Random(1)
    lines = [" ".join(rand.choices(WORDS, k=8)) for _ in range(500)]
    for number in range(FILE_COUNT):
        folder = root / f"p{number % 20}" / f"m{number // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        last = "raise ValueError(index)\n" if number % 50 == 7 else ""
        (folder / f"f{number % 50}.py").write_text("\n".join([*rand.choices(lines, k=60), last]))
    (root / ".gitignore").write_text("*.pyc\nbuild/\n/dist\n__pycache__/\n")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)


def _search_rows(root: Path, repeats: int) -> Iterator[Row]:
    program = search.find_ripgrep() or ""
    for name, pattern in QUERIES.items():
        peers = {"rg": [program, "-n", "--hidden", pattern, "."], "git grep": ["git", "grep", "-n", pattern]}
        yield from _comparison_rows(root, f"grep, {name}", "grep", {"pattern": pattern}, peers, repeats)
    for name, pattern in GLOBS.items():
        peers = {
            "rg": [program, "--files", "--hidden", "-g", pattern],
            "git ls-files": ["git", "ls-files", f":(glob){pattern}"],
        }
        yield from _comparison_rows(root, f"glob, {name} of the files", "glob", {"pattern": pattern}, peers, repeats)


def _comparison_rows(
    root: Path, name: str, tool: str, arguments: dict[str, Any], peers: dict[str, list[str]], repeats: int
) -> Iterator[Row]:
    """Compare the tool, with ripgrep and native, with the installed programs."""
    others = {peer: _program_cost(argv, root, repeats) for peer, argv in peers.items() if argv[0]}
    for variant in ("with rg", "native") if search.find_ripgrep() else ("native",):
        ours = _call_cost(root, tool, arguments, variant, repeats)
        comparison = ", ".join(
            f"{ours.cpu / cost.cpu:.2f} × {peer} ({_format_cost(cost)})" for peer, cost in others.items()
        )
        verdict = _budget_verdict(ours.cpu / 1000, SECONDS_BUDGET, "s")
        if variant == "with rg":
            verdict = _budget_verdict(
                (ours.cpu - START_MS) / others["rg"].cpu, RATIO_BUDGET, f"× rg, without the {START_MS} ms to start it"
            )
        yield f"{name}: {ours.summary}, {variant}", _format_cost(ours), comparison, verdict


def _format_cost(spent: CallCost) -> str:
    return f"{spent.cpu:.0f} ms CPU, {spent.wall:.0f} ms"


def _program_cost(argv: Sequence[str], root: Path, times: int) -> CallCost:
    """Return the cost of a program: mean CPU time and minimum wall time."""
    costs = [_run(argv, root) for _ in range(times)]
    return CallCost(sum(cost.cpu_ms for cost in costs) / times, min(cost.wall_ms for cost in costs))


def _call_cost(root: Path, tool: str, arguments: dict[str, Any], variant: str, times: int) -> CallCost:
    """Return the cost of a call in a session: the difference between several calls and one, with child processes."""
    argv = [sys.executable, "-P", "-m", "bench.tool_calls", str(root), tool, json.dumps(arguments), variant]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    once, often = _run([*argv, "1"], ROOT, env), _run([*argv, str(times + 1)], ROOT, env)
    printed = json.loads(often.output)
    return CallCost((often.cpu_ms - once.cpu_ms) / times, printed["ms"], printed["summary"])


def _run(argv: Sequence[str], cwd: Path, env: Mapping[str, str] = os.environ) -> RunCost:
    cost = run(argv, env, str(cwd))
    if cost.status:
        raise SystemExit(f"{argv[0]} ended with {cost.status}: {cost.output[-2000:]}")
    return cost


def _cold_rows(root: Path, home: Path) -> Iterator[Row]:
    """Measure new processes including start-up, then also without the page cache."""
    command = ["tool", "call", "grep", json.dumps({"pattern": QUERIES["few hits"]})]
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    variants = {"native": [sys.executable, "-P", "-c", _WITHOUT_RIPGREP, *command]}
    if program := search.find_ripgrep():
        variants = {"with rg": [sys.executable, "-P", "-m", "ostler", *command], **variants}
        _drop_page_cache(root)
        comparison = f"rg alone {_run([program, '-n', '--hidden', QUERIES['few hits'], '.'], root).wall_ms:.0f} ms"
    else:
        comparison = ""
    for variant, argv in variants.items():
        spent = _cold_cost(argv, root, env)
        what = f"grep, few hits, {variant}, new process"
        yield what, _format_cost(spent), "start-up included", _budget_verdict(spent.cpu / 1000, SECONDS_BUDGET, "s")
        _drop_page_cache(root)
        unread = _run(argv, root, env)
        yield f"· same, without page cache, {variant}", f"{unread.wall_ms:.0f} ms", comparison, ""


def _cold_cost(argv: Sequence[str], root: Path, env: Mapping[str, str]) -> CallCost:
    costs = [_run(argv, root, env) for _ in range(3)]
    return CallCost(min(cost.cpu_ms for cost in costs), min(cost.wall_ms for cost in costs))


_WITHOUT_RIPGREP = """\
import sys
from ostler.tools import search
search.find_ripgrep = lambda workspace="": None
from ostler.cli.main import dispatch
sys.exit(dispatch(sys.argv[1:]))
"""


def _drop_page_cache(root: Path) -> None:
    """Drop the files from the page cache, as far as the system allows."""
    if not hasattr(os, "posix_fadvise"):
        return
    for folder, _, files in os.walk(root):
        for name in files:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


async def _change_rows(folder: Path, repeats: int) -> list[Row]:
    """Change a line in the middle of a 5 MB file with `edit` and `patch`, compared with plain Python."""
    file = folder / "large.txt"
    text = "".join(LINE.format(number) for number in range(65_000))
    file.write_text(text)
    session = await open_tool_session(folder)
    plain = min((_plain_change(folder / "plain.txt", text) for _ in range(repeats)), key=lambda spent: spent.cpu)
    costs: dict[str, list[CallCost]] = {"edit": [], "patch": []}
    for turn in range(repeats):
        for tool, arguments in _change_arguments(turn):
            clock, cpu = time.perf_counter(), time.process_time()
            result = await session.call(ToolCall(session.new_id("call"), tool, arguments))
            costs[tool].append(CallCost((time.process_time() - cpu) * 1000, (time.perf_counter() - clock) * 1000))
            if result.status != "ok":
                raise SystemExit(f"{tool} failed: {result.for_model}")
    await session.aclose()
    what = f"a line of a {len(text) / 1e6:.1f} MB file, including preview and check"
    least = {tool: min(cost, key=lambda spent: spent.cpu) for tool, cost in costs.items()}
    return [
        (f"{tool} of {what}", _format_cost(cost), f"plain Python {_format_cost(plain)}", "")
        for tool, cost in least.items()
    ]


def _change_arguments(turn: int) -> Sequence[tuple[str, dict[str, Any]]]:
    """Return an edit of one line in the middle, and a patch of another."""
    number = 31_000 + 10 * turn
    before, line = LINE.format(number - 1_000), LINE.format(number)
    around = [LINE.format(number - 1), LINE.format(number + 1)]
    edit = {"path": "large.txt", "old": before, "new": f"changed {turn}\n"}
    hunk = f"@@ -{number},3 +{number},3 @@\n {around[0]}-{line}+changed too {turn}\n {around[1]}"
    return [("edit", edit), ("patch", {"patch": f"--- a/large.txt\n+++ b/large.txt\n{hunk}"})]


def _plain_change(file: Path, text: str) -> CallCost:
    """Read, replace, write and sync with plain Python."""
    file.write_text(text)
    clock, cpu = time.perf_counter(), time.process_time()
    changed = file.read_text().replace(LINE.format(30_000), "changed\n", 1)
    with open(file, "w") as out:
        out.write(changed)
        os.fsync(out.fileno())
    return CallCost((time.process_time() - cpu) * 1000, (time.perf_counter() - clock) * 1000)


def _schema_row() -> Row:
    with tempfile.TemporaryDirectory(prefix="ostler-bench-") as home:
        specs = [tool.spec for tool in builtin_tools(load(Path(home), {"HOME": home}))]
    schemas = [{"name": spec.name, "description": spec.description, "parameters": spec.schema} for spec in specs]
    text = json.dumps(schemas, ensure_ascii=False, separators=(",", ":"))
    tokens = len(re.findall(r"\w+|[^\w\s]", text))
    comparison = f"{len(text.encode()):,} bytes, ≈ {len(text) // 4:,} tokens at four bytes each"
    what = f"schemas of the {len(specs)} default tools, one token per word or sign"
    return what, f"{tokens:,} tokens", comparison, _budget_verdict(tokens, TOKEN_BUDGET, "tokens")


def _budget_verdict(value: float, budget: float, unit: str) -> str:
    return f"{'within' if value <= budget else '**over**'} {budget:g} {unit}"
