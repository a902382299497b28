"""`ostler run`: one prompt, no person, an exit status."""

import os
import signal
import sys
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ostler.cli.arguments import (
    Parser,
    add_backend,
    add_limit_options,
    add_model,
    add_permission_options,
    add_resume_options,
    add_workspace,
    non_empty,
    run_options,
    seconds,
)
from ostler.core.errors import UsageError

STDIN_WAIT_SECONDS = 3.0
MAX_STDIN_BYTES = 16 * 1024 * 1024
EPILOG = """\
exit status: 0 done · 1 error · 2 usage or settings · 3 a limit was reached · 4 something was refused for want of
permission · 124 timeout · 130 cancelled
"""


def main(arguments: list[str]) -> int:
    """Parse, gather the prompt, play it."""
    parser = Parser("ostler run", description="Work on one prompt without a person.", epilog=EPILOG)
    parser.add_argument("prompt", nargs="*", help="what to do; with a pipe, its text is appended")
    parser.add_argument("-o", "--output", choices=("text", "simple", "json", "jsonl"), default="text")
    add_resume_options(parser)
    parser.add_argument("--fork", action="store_true", help="leave that session as it is, and go on with a copy")
    parser.add_argument(
        "--output-schema", metavar="FILE", type=non_empty, help="the answer must be JSON that fits this JSON Schema"
    )
    parser.add_argument(
        "--print-schema", action=_PrintSchemaAction, help="print the JSON Schema of -o json and jsonl, and end"
    )
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help="end after that long")
    parser.add_argument("--agent", metavar="NAME", default="", help="who works: build, plan, or one of yours")
    add_workspace(parser)
    add_backend(parser)
    add_model(parser)
    add_permission_options(parser)
    add_limit_options(parser)
    given = parser.parse_args(arguments)
    if given.fork and not given.resume:
        raise UsageError("--fork copies a session", hint="say which one with --resume or --continue")
    with _record_early_stop(given.output):
        return _run(given)


def _run(args: Namespace) -> int:
    from ostler.app.headless_run import HeadlessRun, record_startup_error
    from ostler.frontends.headless.outputs import make_output
    from ostler.rendering.style import Styler

    with record_startup_error(make_output(args.output, Styler(False))):
        prompt, context = _read_prompt(args.prompt, args.timeout)

    return HeadlessRun(
        prompt,
        context,
        run_options(args),
        args.output,
        args.resume or "",
        args.fork,
        args.timeout,
        args.output_schema or "",
    ).run()


@contextmanager
def _record_early_stop(output: str) -> Iterator[None]:
    """A signal that comes before the run hears signals by itself ends it in the same way, with its record."""
    before = signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if signal.getsignal(signal.SIGTERM) is _raise_interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _write_cancelled_record(output)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _write_cancelled_record(output: str) -> None:
    from ostler.frontends.headless.outputs import make_output
    from ostler.frontends.headless.summary import SummaryBuilder
    from ostler.rendering.style import Styler

    make_output(output, Styler(False)).close(SummaryBuilder().summarize_stop("cancelled"))


class _PrintSchemaAction(Action):
    """Like `--help`: answers at once, whatever else is said."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        import json

        from ostler.frontends.headless.output_schema import run_schema

        sys.stdout.write(json.dumps(run_schema(), indent=2) + "\n")
        parser.exit()


def _read_prompt(words: list[str], timeout: float | None) -> tuple[str, str]:
    """From the arguments or the pipe, and where both are there, the pipe's as its context; a terminal is never read."""
    piped = "" if _has_no_piped_input() else _read_stdin(timeout)
    said, piped = os.fsencode(" ".join(words)).decode("utf-8", "replace").strip(), piped.strip()
    if not (said or piped):
        raise UsageError(
            "there is no prompt", hint='write it as an argument, `ostler run "fix the test"`, or pipe it in'
        )
    return (said, piped) if said else (piped, "")


def _read_stdin(timeout: float | None) -> str:
    """All that is piped in; whoever keeps a pipe open without writing is told what is waited for."""
    import select

    source = sys.stdin.buffer
    if not select.select([source], [], [], min(timeout or STDIN_WAIT_SECONDS, STDIN_WAIT_SECONDS))[0]:
        sys.stderr.write("ostler: waiting for standard input to end (`< /dev/null` if there is none)\n")
        if timeout and not select.select([source], [], [], max(timeout - STDIN_WAIT_SECONDS, 0))[0]:
            raise UsageError("standard input did not come within --timeout", hint="use `< /dev/null` if there is none")
    piped = source.read(MAX_STDIN_BYTES + 1)
    if len(piped) > MAX_STDIN_BYTES:
        raise UsageError(f"more than {MAX_STDIN_BYTES:,} bytes are piped in", hint="put them into a file, and name it")
    return piped.decode("utf-8", "replace")


def _has_no_piped_input() -> bool:
    """Whether standard input is closed, a terminal, or something that will never be written to."""
    if sys.stdin is None or sys.stdin.isatty():
        return True
    import stat

    mode = os.fstat(sys.stdin.fileno()).st_mode
    return not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode))
