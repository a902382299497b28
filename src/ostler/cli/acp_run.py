"""`ostler acp run` (also `acpcli`): sends one prompt to an ACP agent and returns an exit status."""

import argparse
import os
import sys

from ostler.cli.arguments import Parser, fill, seconds
from ostler.cli.stdin import has_piped_input, read_stdin, wait_for_stdin
from ostler.core.errors import UsageError

ACPCLI = "acpcli"
STDIN_WAIT_SECONDS = 1.0  # with a prompt in the arguments, a silent pipe is ignored after this time
EPILOG = """\
exit status: 0 success · 1 agent or protocol error · 2 usage or settings error · 4 permission denied (with
--fail-on-deny) · 124 timeout · 130 interrupted
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments, read the prompt and run it."""
    return _run(_make_parser("ostler acp run"), arguments, "ostler")


def acpcli_main(arguments: list[str]) -> int:
    """Do the same under the name `acpcli`, which also has a `--version`."""
    from ostler import __version__

    parser = _make_parser(ACPCLI)
    parser.add_argument("-V", "--version", action="version", version=f"{ACPCLI} {__version__}")
    return _run(parser, arguments, ACPCLI)


def _run(parser: Parser, arguments: list[str], program: str) -> int:
    args = parser.parse_args(arguments)
    lists = args.list_caps or args.list_modes or args.list_commands or args.list_sessions or args.delete_session
    if args.fork and not args.resume:
        raise UsageError("--fork needs a session to copy", hint="name it with --resume")
    prompt, piped = _read_prompt(args.prompt, parser.prog, is_listing=bool(lists))

    from ostler.app.acp_cli import run_acp
    from ostler.frontends.acp_cli.flags import AcpFlags

    answers = dict(_parse_pair(text, "--answer") for text in args.answer)
    flags = fill(AcpFlags, args, prompt=prompt, piped=piped, options=_options(args), answers=answers, program=program)
    return run_acp(flags)


def acpcli() -> None:
    """Entry point of `acpcli`, which takes the arguments of `ostler acp run`."""
    from ostler.cli.main import run_main

    sys.exit(run_main("ostler.cli.acp_run:acpcli_main", sys.argv[1:], ACPCLI))


def _make_parser(prog: str) -> Parser:
    parser = Parser(prog, description="Send one prompt to an ACP agent, non-interactively.", epilog=EPILOG)
    parser.add_argument(
        "prompt", nargs="*", help="the prompt; piped input is appended; @path in the arguments is sent as a link"
    )
    parser.add_argument("-a", "--agent", metavar="NAME", default="", help="a configured agent (default: the first one)")
    parser.add_argument(
        "-o", "--output", choices=("text", "simple", "json", "jsonl"), default="text", help="output format"
    )
    parser.add_argument(
        "--settings", metavar="FILE", default="", help="read agents and MCP servers from this file only"
    )
    parser.add_argument("--cwd", metavar="DIR", default=".", help="the workspace (default: the current directory)")
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help="stop after this time, with status 124")
    _add_permissions(parser)
    _add_lists(parser)
    _add_session(parser)
    _add_offers(parser)
    return parser


def _add_permissions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("permissions")
    group.add_argument("--write", action="store_true", help="allow changing files in the workspace")
    group.add_argument("--yolo", action="store_true", help="like --write, and allow reading files anywhere")
    group.add_argument("--policy", metavar="FILE", default="", help="a file with rules that override the defaults")
    group.add_argument("--fail-on-deny", action="store_true", help="exit with status 4 if a request was denied")
    group.add_argument(
        "--trust-project", dest="trust", action="store_true", help="trust the project's .ostler/acp.json for this run"
    )


def _add_lists(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("listings (no prompt needed)")
    group.add_argument("--list-caps", action="store_true", help="list the agent's capabilities")
    group.add_argument("--list-modes", action="store_true", help="list the agent's modes")
    group.add_argument("--list-commands", action="store_true", help="list the agent's slash commands")
    group.add_argument("--list-sessions", action="store_true", help="list the agent's sessions for this workspace")
    group.add_argument("--check", action="store_true", help="validate every frame; exit with status 1 on a violation")


def _add_session(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("session")
    group.add_argument("--mode", metavar="ID", help="set the session's mode")
    group.add_argument("--model", metavar="NAME", help="set the session's model")
    group.add_argument(
        "--config", metavar="NAME=VALUE", action="append", default=[], help="set another session option; repeatable"
    )
    group.add_argument("--resume", metavar="ID", default="", help="resume a session of the agent")
    group.add_argument("--fork", action="store_true", help="with --resume: continue in a copy of the session")
    group.add_argument("--save-session", metavar="FILE", default="", help="write the id of the new session to FILE")
    group.add_argument("--delete-session", metavar="ID", default="", help="delete a session of the agent")
    group.add_argument("--auth", dest="login", metavar="ID", default="", help="log in with this method first")


def _add_offers(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("services for the agent")
    group.add_argument(
        "--add-dir",
        dest="directories",
        metavar="DIR",
        action="append",
        default=[],
        help="an additional folder; repeatable",
    )
    group.add_argument("--mcp", metavar="FILE", action="append", default=[], help="a file with MCP servers; repeatable")
    group.add_argument(
        "--answer",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an answer to the agent's questions; repeatable",
    )
    group.add_argument("--no-fs", dest="files", action="store_false", help="do not offer file access")
    group.add_argument("--no-terminal", dest="terminal", action="store_false", help="do not offer terminals")


def _options(args: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    named = [(name, value) for name in ("mode", "model") if (value := getattr(args, name))]
    return (*named, *(_parse_pair(text, "--config") for text in args.config))


def _parse_pair(text: str, flag: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"invalid value for {flag}: {text!r}", hint="use NAME=VALUE")
    return name, value


def _read_prompt(words: list[str], prog: str, *, is_listing: bool) -> tuple[str, str]:
    """Return the prompt in the arguments and the piped input. Raises `UsageError` if a prompt is needed but missing."""
    text = os.fsencode(" ".join(words)).decode("utf-8", "replace").strip()
    piped = "" if is_listing else _read_piped_input(wait=not text).strip()
    if not (text or piped) and not is_listing:
        raise UsageError("no prompt", hint=f'pass it as an argument, `{prog} "explain this"`, or pipe it in')
    return text, piped


def _read_piped_input(*, wait: bool) -> str:
    """Read the piped input; without `wait`, return an empty string if nothing arrives soon."""
    if not has_piped_input() or not (wait or wait_for_stdin(STDIN_WAIT_SECONDS)):
        return ""
    return read_stdin()
