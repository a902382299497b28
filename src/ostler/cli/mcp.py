"""`ostler mcp`: lists, adds, removes, tests and logs in to MCP servers, and serves Ostler's own tools."""

import asyncio
import re
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ostler.cli.arguments import Parser, add_access_options, add_model, add_workspace, run_options
from ostler.core.errors import UsageError
from ostler.text.stderr import notify

if TYPE_CHECKING:
    from pathlib import Path

    from ostler.mcp.server_entry import ServerEntry
    from ostler.settings.effective import Settings

DESCRIPTION = """MCP servers give models more tools. They are configured under `mcp` in ~/.ostler/config.json, in the
project's .ostler/config.json, in the project's .mcp.json, or in OpenCode's opencode.json; those of a project need
`ostler trust`. MCP servers run outside the sandbox, with your rights, unless their entry says "sandbox": true."""
_LOG_LINES = 200


def main(arguments: list[str]) -> int:
    """Parse the arguments and run a subcommand."""
    if arguments[:1] == ["serve"]:
        return _serve(arguments[1:])
    parser = Parser("ostler mcp", description=DESCRIPTION)
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="list|add|remove|test|login|logout|token|logs|serve"
    )
    list_ = actions.add_parser("list", help="list the configured servers; starts none of them")
    add = actions.add_parser(
        "add",
        help="add a server to your config",
        usage="ostler mcp add [OPTIONS] NAME -- PROGRAM [ARGUMENT …]\n       ostler mcp add [OPTIONS] NAME URL",
    )
    add.add_argument("name", help="name of the server; its tools are called NAME_TOOL")
    add.add_argument("command", nargs="+", metavar="PROGRAM or URL", help="program with its arguments, or a URL")
    add.add_argument("--env", metavar="NAME=VALUE", action="append", default=[], help="variable of a local server")
    add.add_argument("--header", metavar="NAME=VALUE", action="append", default=[], help="header of a remote server")
    add.add_argument("--replace", action="store_true", help="replace a server with the same name")
    remove = actions.add_parser("remove", help="remove a server from your config")
    test = actions.add_parser("test", help="start a server and show its protocol, tools and their cost")
    login = actions.add_parser("login", help="log in to a remote server with a browser (OAuth)")
    login.add_argument("--no-browser", action="store_true", help="only print the address to open")
    logout = actions.add_parser("logout", help="delete the login at a remote server")
    token = actions.add_parser("token", help="store the bearer token of a remote server, read from standard input")
    token.add_argument("--delete", action="store_true", help="delete the stored token")
    logs = actions.add_parser("logs", help="show the error output of a server")
    actions.add_parser("serve", help="serve Ostler's own tools to an MCP client on stdin and stdout")
    for action in (remove, test, login, logout, token, logs):
        action.add_argument("name", help="name of the server")
    for action in (list_, test, login, logout, token):
        add_workspace(action)
        action.add_argument(
            "--trust-project", action="store_true", help="trust the project's settings for this command"
        )
    args = parser.parse_args(arguments)
    run = {"list": _list, "add": _add, "remove": _remove, "test": _test, "token": _token, "logs": _logs}
    return {**run, "login": _login, "logout": _logout}[args.action](args)


def _list(args: Namespace) -> int:
    from ostler.app.tool_host import make_servers
    from ostler.credentials.store import open_credentials
    from ostler.mcp.configured_servers import mcp_source
    from ostler.mcp.oauth_access import describe_access
    from ostler.text.sanitise import sanitise

    cwd, settings = _load_settings(args)
    for note in (*settings.notes, *map(str, settings.problems)):
        notify(note)
    waiting = [setting for setting in settings.pending_trust if setting.key.startswith("mcp.")]
    source = mcp_source(cwd, make_servers(settings))
    for status in source.statuses():
        server = source.server(status.name)
        assert server is not None
        known = f"{status.tools} tools known" if status.tools else "tools not known yet"
        detail = status.detail or ("" if status.state == "disabled" else known)
        access = describe_access(server.entry, open_credentials()) if server.entry.url else ""
        parts = (status.name, status.state, server.entry.place, server.entry.confinement, access, detail)
        sys.stdout.write(f"{sanitise('  '.join(filter(None, parts)))}\n")
    for setting in waiting:
        sys.stdout.write(f"{setting.key.removeprefix('mcp.')}  not trusted  run `ostler trust` to use it\n")
    if not source.statuses() and not waiting:
        sys.stdout.write("no MCP server is configured; add one with `ostler mcp add`\n")
    return 0


def _load_settings(args: Namespace) -> "tuple[Path, Settings]":
    """Return the workspace and its settings."""
    from ostler.knowledge.trusted_settings import load_settings
    from ostler.settings.project_paths import workspace_path

    cwd = workspace_path(args.cwd)
    return cwd, load_settings(cwd, trust=args.trust_project)


def _add(args: Namespace) -> int:
    from ostler.mcp.config_file import add_server

    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", args.name):
        raise UsageError(
            f"{args.name[:80]!r} is not a usable name",
            hint="use at most 32 letters, digits, dots, dashes and underscores",
        )
    is_url = len(args.command) == 1 and args.command[0].startswith(("http://", "https://"))
    entry: dict[str, Any] = {"type": "remote", "url": args.command[0]} if is_url else {"command": args.command}
    if is_url and args.env:
        raise UsageError("--env is for local servers", hint="use --header for a remote one")
    if not is_url and args.header:
        raise UsageError("--header is for remote servers", hint="use --env for a local one")
    if pairs := args.env or args.header:
        entry["headers" if is_url else "environment"] = dict(map(_parse_pair, pairs))
    file = add_server(args.name, entry, replace=args.replace)
    sys.stdout.write(f"added {args.name} to {file}; check it with `ostler mcp test {args.name}`\n")
    return 0


def _parse_pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise UsageError(f"{text[:80]!r} is not NAME=VALUE")
    return name, value


def _remove(args: Namespace) -> int:
    from ostler.mcp.config_file import remove_server

    file = remove_server(args.name)
    sys.stdout.write(f"removed {args.name} from {file}\n")
    return 0


def _test(args: Namespace) -> int:
    from ostler.app.tool_host import make_servers
    from ostler.mcp.server_check import check_server

    cwd, settings = _load_settings(args)
    lines, works = asyncio.run(check_server(cwd, make_servers(settings), args.name))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0 if works else 1


def _login(args: Namespace) -> int:
    from ostler.cli.mcp_login import log_in

    return log_in(_remote_entry(args), open_browser=not args.no_browser)


def _logout(args: Namespace) -> int:
    from ostler.cli.mcp_login import log_out

    return log_out(_remote_entry(args))


def _remote_entry(args: Namespace) -> "ServerEntry":
    """Return the entry of a remote server. Raises `UsageError` if there is none."""
    from ostler.mcp.configured_entries import server_entries

    entries = server_entries(*_load_settings(args))
    entry = next((entry for entry in entries if entry.name == args.name and entry.url), None)
    if entry is None:
        raise UsageError(f"there is no remote MCP server {args.name[:80]!r}", hint="see `ostler mcp list`")
    if entry.problem:
        raise UsageError(entry.problem)
    return entry


def _token(args: Namespace) -> int:
    from ostler.cli.stdin import read_secret
    from ostler.credentials.store import open_credentials
    from ostler.mcp.oauth_access import describe_access, token_name

    entry = _remote_entry(args)
    name = token_name(entry)
    if args.delete:
        found = open_credentials().delete(name)
        sys.stdout.write(f"deleted the token for {name.account}\n" if found else f"no token for {name.account}\n")
        return 0
    token = read_secret(f"Token for {name.account}: ").strip()
    if not token or not token.isprintable() or " " in token:
        raise UsageError("the token is empty or contains spaces", hint="pass only the token, without Bearer")
    open_credentials().set(name, token)
    sys.stdout.write(f"stored the token for {name.account}\n")
    if describe_access(entry, open_credentials()) != "token stored":
        sys.stdout.write(f"the login is used first; end it with `ostler mcp logout {entry.name}` to use the token\n")
    return 0


def _serve(arguments: list[str]) -> int:
    parser = Parser(
        "ostler mcp serve",
        description="Serve Ostler's tools, and its agent as the tool `run`, to an MCP client on stdin and stdout. "
        "The client's user is asked for approval, if the client supports elicitation; otherwise the call is denied.",
    )
    parser.add_argument(
        "--tools", metavar="NAMES", default="", help="the only tools to serve, such as 'read,grep,glob'"
    )
    parser.add_argument("--agent", metavar="NAME", default="", help="the agent that `run` uses")
    parser.set_defaults(ephemeral=False)
    add_workspace(parser)
    add_model(parser)
    add_access_options(parser)
    args = parser.parse_args(arguments)

    from ostler.app.mcp_server import run_mcp_server

    return run_mcp_server(run_options(args), [name.strip() for name in args.tools.split(",") if name.strip()])


def _logs(args: Namespace) -> int:
    from ostler.mcp.server_check import log_lines

    lines = log_lines(args.name, _LOG_LINES)
    sys.stdout.write("".join(f"{line}\n" for line in lines) or f"no output of {args.name} is logged\n")
    return 0
