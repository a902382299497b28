"""`ostler zero`: works with an Agent Zero server, interactively or for one prompt, and stores its key."""

import os
import sys

from ostler.core.errors import UsageError

BACKEND = ("--backend", "agent_zero")
HELP = """\
usage: ostler zero [OPTIONS]           interactive session (options of `ostler chat`)
       ostler zero run [OPTIONS] …     one prompt (options of `ostler run`)
       ostler zero context [OPTIONS]   print the description of the workspace that is sent (options of both)
       ostler zero login               store the API key, read from the terminal or standard input
       ostler zero logout              delete the stored key

The server is set with AGENTZERO_API_URL or connection.api_url in the config.
"""


def main(arguments: list[str]) -> int:
    """Run the subcommand that the arguments name; without one, start an interactive session."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if name in ("-h", "--help"):
        sys.stdout.write(HELP)
        return 0
    if name == "run":
        from ostler.cli.run import main as run

        return run([*BACKEND, *rest])
    if name == "context":
        return _print_context(rest)
    if name in ("login", "logout"):
        return _change_key(name, rest)
    if name and not name.startswith("-"):
        raise UsageError(f"unknown command {name!r}", hint="see `ostler zero --help`")
    from ostler.cli.chat import main as chat

    return chat([*BACKEND, *arguments])


def _print_context(arguments: list[str]) -> int:
    from ostler.cli.arguments import (
        Parser,
        add_agent,
        add_limit_options,
        add_mode,
        add_model,
        add_permission_options,
        add_workspace,
        run_options,
    )

    text = "Print exactly what Agent Zero gets about this workspace, without contacting the server."
    parser = Parser("ostler zero context", description=text)
    parser.add_argument("--run", action="store_true", help="as `ostler zero run` sends it, where nobody can approve")
    for add in (add_workspace, add_agent, add_model, add_permission_options, add_mode, add_limit_options):
        add(parser)
    args = parser.parse_args(arguments)

    import asyncio

    from ostler.app.zero_context import describe_workspace

    described = asyncio.run(describe_workspace(run_options(args), interactive=not args.run))
    if described:
        sys.stdout.write(f"{described}\n")
    else:
        sys.stderr.write("nothing is sent: context.enabled is false, or context.max_bytes is too small\n")
    return 0


def _change_key(name: str, rest: list[str]) -> int:
    if rest:
        raise UsageError(f"`ostler zero {name}` takes no arguments", hint="the key is read from standard input")
    from pathlib import Path

    from ostler.app.zero_backend import CREDENTIAL_SERVICE, server_location
    from ostler.core.credentials import CredentialName
    from ostler.credentials.store import LocalCredentials
    from ostler.knowledge.trusted_settings import load_settings
    from ostler.settings.home import require_home

    origin, _ = server_location(load_settings(Path.cwd()).config.connection)
    credentials, account = (
        LocalCredentials(require_home(os.environ)),
        CredentialName(CREDENTIAL_SERVICE, origin.address),
    )
    if name == "logout":
        deleted = credentials.delete(account)
        print(f"deleted the key of {origin.address}" if deleted else f"there is no key of {origin.address}")
        return 0
    key = _read_key(origin.address).strip()
    if not key or not key.isprintable():
        raise UsageError("the key is empty or contains control characters")
    credentials.set(account, key)
    print(f"stored the key of {origin.address}")
    return 0


def _read_key(address: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    from getpass import getpass

    return getpass(f"API key of Agent Zero at {address}: ")
