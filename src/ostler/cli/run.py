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
    add_bounds,
    add_grants,
    add_model,
    add_resuming,
    add_workspace,
    named,
    run_options,
    seconds,
)
from ostler.vocabulary.errors import UsageError

PATIENCE = 3.0
MOST_PIPED = 16 * 1024 * 1024
EPILOG = """\
exit status: 0 done · 1 error · 2 usage or settings · 3 a limit was reached · 4 something was refused for want of
permission · 124 timeout · 130 cancelled
"""


def main(arguments: list[str]) -> int:
    """Parse, gather the prompt, play it."""
    parser = Parser("ostler run", description="Work on one prompt without a person.", epilog=EPILOG)
    parser.add_argument("prompt", nargs="*", help="what to do; with a pipe, its text is appended")
    parser.add_argument("-o", "--output", choices=("text", "simple", "json", "jsonl"), default="text")
    add_resuming(parser)
    parser.add_argument("--fork", action="store_true", help="leave that session as it is, and go on with a copy")
    parser.add_argument(
        "--output-schema", metavar="FILE", type=named, help="the answer must be JSON that fits this JSON Schema"
    )
    parser.add_argument(
        "--print-schema", action=_PrintSchema, help="print the JSON Schema of -o json and jsonl, and end"
    )
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help="end after that long")
    parser.add_argument("--agent", metavar="NAME", default="", help="who works: build, plan, or one of yours")
    add_workspace(parser)
    add_backend(parser)
    add_model(parser)
    add_grants(parser)
    add_bounds(parser)
    given = parser.parse_args(arguments)
    if given.fork and not given.resume:
        raise UsageError("--fork copies a session", hint="say which one with --resume or --continue")
    with _stopped_early(given.output):
        return _play(given)


def _play(given: Namespace) -> int:
    from ostler.app.headless import Headless, recorded
    from ostler.drawing.paint import Paint
    from ostler.faces.printer.outputs import make_output

    with recorded(make_output(given.output, Paint(False))):
        prompt, context = _prompt(given.prompt, given.timeout)

    return Headless(
        prompt,
        context,
        run_options(given),
        given.output,
        given.resume or "",
        given.fork,
        given.timeout,
        given.output_schema or "",
    ).play()


@contextmanager
def _stopped_early(output: str) -> Iterator[None]:
    """A signal that comes before the run hears signals by itself ends it in the same way, with its record."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if signal.getsignal(signal.SIGTERM) is _interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _tell_stopped(output)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _tell_stopped(output: str) -> None:
    from ostler.drawing.paint import Paint
    from ostler.faces.printer.outputs import make_output
    from ostler.faces.printer.summary import Tally

    make_output(output, Paint(False)).close(Tally().stopped("cancelled"))


class _PrintSchema(Action):
    """Like `--help`: answers at once, whatever else is said."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        import json

        from ostler.faces.printer.schema import run_schema

        sys.stdout.write(json.dumps(run_schema(), indent=2) + "\n")
        parser.exit()


def _prompt(words: list[str], timeout: float | None) -> tuple[str, str]:
    """From the arguments or the pipe, and where both are there, the pipe's as its context; a terminal is never read."""
    piped = "" if _no_pipe() else _piped(timeout)
    said, piped = os.fsencode(" ".join(words)).decode("utf-8", "replace").strip(), piped.strip()
    if not (said or piped):
        raise UsageError(
            "there is no prompt", hint='write it as an argument, `ostler run "fix the test"`, or pipe it in'
        )
    return (said, piped) if said else (piped, "")


def _piped(timeout: float | None) -> str:
    """All that is piped in; whoever keeps a pipe open without writing is told what is waited for."""
    import select

    source = sys.stdin.buffer
    if not select.select([source], [], [], min(timeout or PATIENCE, PATIENCE))[0]:
        sys.stderr.write("ostler: waiting for standard input to end (`< /dev/null` if there is none)\n")
        if timeout and not select.select([source], [], [], max(timeout - PATIENCE, 0))[0]:
            raise UsageError("standard input did not come within --timeout", hint="use `< /dev/null` if there is none")
    piped = source.read(MOST_PIPED + 1)
    if len(piped) > MOST_PIPED:
        raise UsageError(f"more than {MOST_PIPED:,} bytes are piped in", hint="put them into a file, and name it")
    return piped.decode("utf-8", "replace")


def _no_pipe() -> bool:
    """Whether standard input is closed, a terminal, or something that will never be written to."""
    if sys.stdin is None or sys.stdin.isatty():
        return True
    import stat

    mode = os.fstat(sys.stdin.fileno()).st_mode
    return not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode))
