"""`ostler acp run`, also as `acpcli`: one prompt to an ACP agent, and an exit status."""

import argparse
import os
import sys

from ostler.cli.arguments import Parser, seconds
from ostler.core.errors import UsageError

STDIN_WAIT_SECONDS = 1.0  # how long a pipe may stay silent beside a prompt that was given as words
EPILOG = """\
exit status: 0 the prompt came to its end · 1 the agent or the protocol failed · 2 usage or settings · 4 something was
denied, with --fail-on-deny · 124 timeout · 130 interrupted
"""


def main(arguments: list[str]) -> int:
    """Parse, gather the prompt, play it."""
    given = _make_parser().parse_args(arguments)
    lists = given.list_caps or given.list_modes or given.list_commands or given.list_sessions or given.delete_session
    if given.fork and not given.resume:
        raise UsageError("--fork copies a session", hint="say which one with --resume")
    prompt = _read_prompt(given.prompt, is_listing=bool(lists))

    from ostler.app.acp_flags import AcpFlags
    from ostler.app.acp_run import run_acp

    flags = AcpFlags(
        prompt=prompt,
        agent=given.agent,
        output=given.output,
        settings=given.settings,
        cwd=given.cwd,
        write=given.write,
        yolo=given.yolo,
        policy=given.policy,
        list_caps=given.list_caps,
        list_modes=given.list_modes,
        list_commands=given.list_commands,
        list_sessions=given.list_sessions,
        delete_session=given.delete_session,
        options=_options(given),
        resume=given.resume,
        fork=given.fork,
        save_session=given.save_session,
        timeout=given.timeout,
        directories=tuple(given.add_dir),
        mcp=tuple(given.mcp),
        files=not given.no_fs,
        terminal=not given.no_terminal,
        login=given.auth,
        answers=dict(_parse_pair(text, "--answer") for text in given.answer),
        check=given.check,
        fail_on_deny=given.fail_on_deny,
        trust=given.trust_project,
    )
    return run_acp(flags)


def acpcli() -> None:
    """The program `acpcli`: the same command line, without `ostler acp run` before it."""
    from ostler.cli.main import dispatch

    sys.exit(dispatch(["acp", "run", *sys.argv[1:]]))


def _make_parser() -> Parser:
    parser = Parser("ostler acp run", description="Send one prompt to an ACP agent.", epilog=EPILOG)
    parser.add_argument(
        "prompt", nargs="*", help="what to ask; with a pipe, its text is appended; @path becomes a link"
    )
    parser.add_argument("-a", "--agent", metavar="NAME", default="", help="which agent (default: the first listed)")
    parser.add_argument("-o", "--output", choices=("text", "simple", "json", "jsonl"), default="text")
    parser.add_argument(
        "--settings", metavar="FILE", default="", help="agents and MCP servers, instead of the usual files"
    )
    parser.add_argument("--cwd", metavar="DIR", default=".", help="the workspace (default: this folder)")
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help="end after that long, with status 124")
    _add_permissions(parser)
    _add_lists(parser)
    _add_session(parser)
    _add_offers(parser)
    return parser


def _add_permissions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the agent may do")
    group.add_argument("--write", action="store_true", help="change files in the workspace")
    group.add_argument("--yolo", action="store_true", help="--write, and read anywhere")
    group.add_argument("--policy", metavar="FILE", default="", help="rules of yours over the usual ones")
    group.add_argument("--fail-on-deny", action="store_true", help="status 4 when something was denied")
    group.add_argument("--trust-project", action="store_true", help="use the project's own .ostler/acp.json")


def _add_lists(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the agent has; without a prompt nothing is asked of it")
    group.add_argument("--list-caps", action="store_true", help="its capabilities")
    group.add_argument("--list-modes", action="store_true", help="its modes")
    group.add_argument("--list-commands", action="store_true", help="its slash commands")
    group.add_argument("--list-sessions", action="store_true", help="its sessions for this folder")
    group.add_argument("--check", action="store_true", help="hold every frame to the protocol; a fault is status 1")


def _add_session(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the session")
    group.add_argument("--mode", metavar="ID", help="its mode")
    group.add_argument("--model", metavar="NAME", help="its model")
    group.add_argument("--config", metavar="NAME=VALUE", action="append", default=[], help="another option; repeatable")
    group.add_argument("--resume", metavar="ID", default="", help="go on with an earlier session of the agent's")
    group.add_argument("--fork", action="store_true", help="leave that session as it is, and go on with a copy")
    group.add_argument("--save-session", metavar="FILE", default="", help="write the id of a new session there")
    group.add_argument("--delete-session", metavar="ID", default="", help="delete a session of the agent's")
    group.add_argument("--auth", metavar="ID", default="", help="log in by this method first")


def _add_offers(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the agent is given")
    group.add_argument("--add-dir", metavar="DIR", action="append", default=[], help="a folder besides; repeatable")
    group.add_argument("--mcp", metavar="FILE", action="append", default=[], help="MCP servers of a file; repeatable")
    group.add_argument(
        "--answer", metavar="NAME=VALUE", action="append", default=[], help="for its questions; repeatable"
    )
    group.add_argument("--no-fs", action="store_true", help="no files through this client")
    group.add_argument("--no-terminal", action="store_true", help="no terminals of this client's")


def _options(args: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    named = [(name, value) for name in ("mode", "model") if (value := getattr(args, name))]
    return (*named, *(_parse_pair(text, "--config") for text in args.config))


def _parse_pair(text: str, flag: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{flag} {text!r} is no pair", hint="write it as NAME=VALUE")
    return name, value


def _read_prompt(words: list[str], *, is_listing: bool) -> str:
    """From the arguments, the pipe, or both. A terminal is never read, nor a pipe where only lists are asked for."""
    said = os.fsencode(" ".join(words)).decode("utf-8", "replace").strip()
    piped = "" if is_listing or _has_no_piped_input() else _read_stdin(wait=not said).strip()
    prompt = "\n\n".join(part for part in (said, piped) if part)
    if not prompt and not is_listing:
        raise UsageError(
            "there is no prompt", hint='write it as an argument, `ostler acp run "explain this"`, or pipe it in'
        )
    return prompt


def _read_stdin(*, wait: bool) -> str:
    """All that is piped in; beside words, a pipe that nobody writes to is soon left alone."""
    import select

    source = sys.stdin.buffer
    if not wait and not select.select([source], [], [], STDIN_WAIT_SECONDS)[0]:
        return ""
    return source.read().decode("utf-8", "replace")


def _has_no_piped_input() -> bool:
    """Whether standard input is closed, a terminal, or something that will never be written to."""
    if sys.stdin is None or sys.stdin.isatty():
        return True
    import stat

    mode = os.fstat(sys.stdin.fileno()).st_mode
    return not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode))
