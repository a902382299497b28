"""`ostler run`: runs one prompt non-interactively and returns an exit status."""

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
    add_model,
    add_session_options,
    fill,
    non_empty,
    run_options,
    seconds,
)
from ostler.cli.stdin import has_piped_input, read_stdin, wait_for_stdin
from ostler.core.errors import UsageError

STDIN_WAIT_SECONDS = 3.0
MAX_STDIN_BYTES = 16 * 1024 * 1024
EPILOG = """\
exit status: 0 success · 1 error · 2 usage or settings error · 3 limit reached · 4 permission denied · 124 timeout ·
130 cancelled
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments, read the prompt and run it."""
    parser = Parser("ostler run", description="Run one prompt non-interactively.", epilog=EPILOG)
    parser.add_argument("prompt", nargs="*", help="the prompt; piped input is added as context")
    parser.add_argument(
        "-o", "--output", choices=("text", "simple", "json", "jsonl"), default="text", help="output format"
    )
    add_session_options(parser)
    parser.add_argument(
        "--fork", action="store_true", help="with --resume or --continue: continue in a copy of the session"
    )
    parser.add_argument(
        "--output-schema",
        dest="schema",
        metavar="FILE",
        type=non_empty,
        help="require an answer in JSON that matches this JSON Schema",
    )
    parser.add_argument(
        "--print-schema", action=_PrintSchemaAction, help="print the JSON Schema of -o json and jsonl, and exit"
    )
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help="stop after this time, with status 124")
    add_backend(parser)
    add_model(parser)
    args = parser.parse_args(arguments)
    if args.fork and not args.resume:
        raise UsageError("--fork needs a session to copy", hint="name it with --resume or --continue")
    with _record_early_stop(args.output):
        return _run(args)


def _run(args: Namespace) -> int:
    from ostler.app.headless_run import HeadlessRun
    from ostler.frontends.headless.outputs import make_output, record_startup_error
    from ostler.rendering.style import Styler

    with record_startup_error(make_output(args.output, Styler(False))):
        prompt, context = _read_prompt(args.prompt, args.timeout)

    options, is_piped = run_options(args).unattended(), not " ".join(args.prompt).strip()
    return fill(HeadlessRun, args, prompt=prompt, context=context, options=options, is_piped=is_piped).run()


@contextmanager
def _record_early_stop(output: str) -> Iterator[None]:
    """Also write the output's final record if a signal arrives before the run installs its own handlers."""
    previous = signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if signal.getsignal(signal.SIGTERM) is _raise_interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _write_cancelled_record(output)
        raise
    finally:
        signal.signal(signal.SIGTERM, previous)


def _raise_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _write_cancelled_record(output: str) -> None:
    from ostler.frontends.headless.outputs import make_output
    from ostler.frontends.headless.summary import SummaryBuilder
    from ostler.rendering.style import Styler

    make_output(output, Styler(False)).close(SummaryBuilder().summarize_stop("cancelled"))


class _PrintSchemaAction(Action):
    """Prints the schema and exits, like `--help`."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        import json

        from ostler.frontends.headless.output_schema import run_schema

        sys.stdout.write(json.dumps(run_schema(), indent=2) + "\n")
        parser.exit()


def _read_prompt(words: list[str], timeout: float | None) -> tuple[str, str]:
    """Return the prompt and its context: with a prompt in the arguments, piped input is the context."""
    piped = _read_piped_input(timeout).strip() if has_piped_input() else ""
    text = os.fsencode(" ".join(words)).decode("utf-8", "replace").strip()
    if not (text or piped):
        raise UsageError("no prompt", hint='pass it as an argument, `ostler run "fix the test"`, or pipe it in')
    return (text, piped) if text else (piped, "")


def _read_piped_input(timeout: float | None) -> str:
    """Read the piped input; if nothing arrives, print what the run waits for, and raise after `timeout`."""
    if not wait_for_stdin(min(timeout or STDIN_WAIT_SECONDS, STDIN_WAIT_SECONDS)):
        sys.stderr.write(
            "ostler: waiting for standard input to end; add `< /dev/null` if you do not pipe anything in\n"
        )
        if timeout and not wait_for_stdin(max(timeout - STDIN_WAIT_SECONDS, 0)):
            raise UsageError(
                "no standard input within --timeout", hint="add `< /dev/null` if you do not pipe anything in"
            )
    return read_stdin(MAX_STDIN_BYTES)
