"""`./run bench jobs`: run the jobs with Ostler, and with aider where it is installed, on the same model server."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.jobs.job import Half, Job, load_jobs

JOB_SECONDS = 600
ENDPOINT = re.compile(r"http://127\.0\.0\.1:\d+/v1")
MODEL = "qwen2.5-coder-1.5b-instruct-q4_k_m"


class Outcome(msgspec.Struct, frozen=True):
    """The result of one job by one program."""

    program: str
    half: str
    job: str
    kind: str
    failure: str
    seconds: float
    load: float


class Program(msgspec.Struct, frozen=True):
    """A program that works on a job: its name, and the executable."""

    name: str
    argv: tuple[str, ...]

    def command(self, job: Job, base_url: str) -> list[str]:
        """Return the command line that works on the job."""
        question = job.kind == "question"
        if self.name == "aider":
            flags = [
                "--no-check-update",
                "--analytics-disable",
                "--no-show-model-warnings",
                "--no-pretty",
                "--yes-always",
            ]
            flags += ["--no-auto-commits", "--no-gitignore", "--no-suggest-shell-commands", "--no-stream"]
            flags += ["--model", f"openai/{MODEL}", "--openai-api-base", base_url, "--openai-api-key", "none"]
            mode = ["--chat-mode", "ask"] if question else []
            return [*self.argv, *flags, *mode, *job.named_files, "--message", job.prompt]
        endpoint = ["--model", "embedded"] if self.name == "embedded" else ["--base-url", base_url, "--model", MODEL]
        return [*self.argv, "run", *endpoint, "--ephemeral", *([] if question else ["--write"]), job.prompt]


def main(arguments: Sequence[str]) -> int:
    """Parse the arguments, run the jobs and print a table."""
    parser = argparse.ArgumentParser(prog="./run bench jobs", description=__doc__)
    parser.add_argument("--half", choices=["tuning", "held_out", "both"], default="both")
    parser.add_argument("--job", action="append", default=[], help="run only this job; may be repeated")
    parser.add_argument("--server", default="", help="base URL of a running server, instead of `ostler model serve`")
    parser.add_argument("--threads", type=int, default=1, help="threads of the server")
    parser.add_argument("--aider", default=shutil.which("aider") or "", help="path of aider's executable")
    parser.add_argument("--ostler", default="", help="path of another version's src folder, to compare with")
    parser.add_argument("--only", choices=["ostler", "aider"], help="run only one of the programs")
    parser.add_argument("--embedded", action="store_true", help="let Ostler load the model itself for each job")
    parser.add_argument("--keep", action="store_true", help="write the figures to bench/RESULTS.md")
    parser.add_argument("--output", type=Path, help="append each result to this file, as JSON lines")
    args = parser.parse_args(arguments)
    halves: list[Half] = ["tuning", "held_out"] if args.half == "both" else [args.half]
    programs = [Program("embedded" if args.embedded else "ostler", (sys.executable, "-P", "-m", "ostler"))]
    programs += [Program("aider", (args.aider,))] if args.aider else []
    programs = [program for program in programs if args.only in (None, program.name.replace("embedded", "ostler"))]
    outcomes: list[Outcome] = []
    with _server(args.server, args.threads) as base_url:
        for half, job in [(name, job) for name in halves for job in load_jobs(name)]:
            for program in programs if not args.job or job.name in args.job else ():
                outcomes.append(_run_job(program, half, job, base_url, args.ostler))
                _report(outcomes[-1], args.output)
    text = "\n".join([*summary(outcomes), "", *details(outcomes)])
    print(text)
    if args.keep:
        _keep(text)
    return 0


def _keep(text: str) -> None:
    """Replace the section of the jobs in bench/RESULTS.md."""
    from bench.report import HERE, JOBS_HEADING

    results = HERE / "RESULTS.md"
    before = results.read_text(encoding="utf-8").partition(JOBS_HEADING)[0]
    results.write_text(f"{before}{JOBS_HEADING}\n\n{text}\n", encoding="utf-8")


def _run_job(program: Program, half: str, job: Job, base_url: str, source: str) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="job-") as name:
        scratch = Path(name)
        folder, home = scratch / "work", scratch / "home"
        folder.mkdir()
        home.mkdir()
        job.create(folder)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8"}
        env |= {"PYTHONPATH": source} if source and program.name != "aider" else {}
        env |= {"OSTLER_HOME": os.environ["OSTLER_HOME"]} if "OSTLER_HOME" in os.environ else {}
        if program.name == "aider":
            for step in (
                ["init", "-q"],
                ["add", "."],
                ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"],
            ):
                subprocess.run(["git", *step], cwd=folder, env=env, check=True)
        load, started = os.getloadavg()[0], time.monotonic()
        output = _run_program(program.command(job, base_url), folder, env)
        seconds = time.monotonic() - started
        failure = "it did not end" if output is None else job.failure(folder, output)
        if keep := os.environ.get("OSTLER_JOB_LOGS"):
            Path(keep, f"{half}-{job.name}-{program.name}.txt").write_text(f"{output}\n\n{failure or 'solved'}\n")
        return Outcome(program.name, half, job.name, job.kind, failure, round(seconds, 1), round(load, 1))


def _run_program(argv: list[str], folder: Path, env: dict[str, str]) -> str | None:
    """Return the output, or None if the program did not end."""
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if not os.environ.get("OSTLER_JOB_LOGS") else subprocess.STDOUT,
            timeout=JOB_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.decode("utf-8", "replace")


@contextmanager
def _server(url: str, threads: int) -> Iterator[str]:
    """Start `ostler model serve` unless a server is given; yield its base URL."""
    if url:
        yield url
        return
    argv = [sys.executable, "-P", "-m", "ostler", "model", "serve", "--port", "0", "--threads", str(threads)]
    with subprocess.Popen([*argv, MODEL], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if ENDPOINT.search(line)), "")
            if not (match := ENDPOINT.search(line)):
                raise SystemExit("`ostler model serve` did not start; run `ostler model install` first")
            yield match[0]
        finally:
            process.terminate()


def _report(outcome: Outcome, file: Path | None) -> None:
    print(f"{outcome.program:9} {outcome.job:26} {outcome.seconds:6.1f} s  {outcome.failure or 'solved'}", flush=True)
    if file:
        with file.open("a") as opened:
            opened.write(json.dumps(msgspec.to_builtins(outcome)) + "\n")


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a Markdown table: jobs solved and seconds for each half and program."""
    yield "| half | program | solved | seconds in all | seconds, median | load |"
    yield "|---|---|---|---|---|---|"
    groups = dict.fromkeys((outcome.half, outcome.program) for outcome in outcomes)
    for half, program in groups:
        group = [outcome for outcome in outcomes if (outcome.half, outcome.program) == (half, program)]
        seconds = sorted(outcome.seconds for outcome in group)
        solved = sum(not outcome.failure for outcome in group)
        median = seconds[len(seconds) // 2]
        load = sum(outcome.load for outcome in group) / len(group)
        counts = f"{solved} of {len(group)} | {sum(seconds):.0f} | {median:.0f} | {load:.1f}"
        yield f"| {half.replace('_', '-')} | {program} | {counts} |"


def details(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a Markdown table with each job: the seconds, or why it was not solved."""
    programs = list(dict.fromkeys(outcome.program for outcome in outcomes))
    yield f"| half | job | {' | '.join(programs)} |"
    yield f"|---|---|{'---|' * len(programs)}"
    for half, job in dict.fromkeys((outcome.half, outcome.job) for outcome in outcomes):
        cells = {
            outcome.program: f"{outcome.seconds:.0f} s" + (" – not solved" if outcome.failure else "")
            for outcome in outcomes
            if (outcome.half, outcome.job) == (half, job)
        }
        yield f"| {half.replace('_', '-')} | {job} | {' | '.join(cells.get(name, '') for name in programs)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
