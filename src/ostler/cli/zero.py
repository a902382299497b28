"""`ostler zero`: works with an Agent Zero server, interactively or for one prompt, and stores its key."""

import os
import sys

from ostler.core.errors import UsageError

BACKEND = ("--backend", "agent_zero")
HELP = """\
usage: ostler zero [OPTIONS]           interactive session (options of `ostler chat`)
       ostler zero --tui [OPTIONS]     the same in the full-screen client (options of `ostler tui`)
       ostler zero run [OPTIONS] …     one prompt (options of `ostler run`)
       ostler zero context [OPTIONS]   print the description of the workspace that is sent (options of both)
       ostler zero login [--user NAME] store the API key, or the password of a user of its web page, read from the
                                       terminal or standard input
       ostler zero logout              delete the stored key, user and password

The server is set with AGENTZERO_API_URL or connection.api_url in the config. It selects and pays for its model, so
--model, --base-url, --max-tokens and --max-cost have no effect; --max-steps and --max-time limit a turn.
"""


def main(arguments: list[str]) -> int:
    """Run the subcommand that the arguments name; without one, start an interactive session."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    workspace = _workspace_option(arguments)
    if name in ("-h", "--help"):
        sys.stdout.write(HELP)
        return 0
    if name == "run":
        from ostler.cli.run import main as run

        return run([*BACKEND, *workspace, *rest])
    if name == "context":
        return _print_context([*workspace, *rest])
    if name in ("login", "logout"):
        return _change_key(name, [*workspace, *rest])
    if name and not name.startswith("-"):
        raise UsageError(f"unknown command {name!r}", hint="see `ostler zero --help`")
    if "--tui" in arguments:
        from ostler.cli.tui import main as tui

        return tui([*BACKEND, *workspace, *(argument for argument in arguments if argument != "--tui")])
    from ostler.cli.chat import main as chat

    return chat([*BACKEND, *workspace, *arguments])


def _workspace_option(arguments: list[str]) -> list[str]:
    """Return the option for the folder in AGENTZERO_WORKSPACE_ROOT, unless the arguments name another one."""
    folder = os.environ.get("AGENTZERO_WORKSPACE_ROOT", "")
    given = any(argument.partition("=")[0] == "--cwd" for argument in arguments)
    if not folder or given:
        return []
    if not os.path.isdir(folder):
        raise UsageError(f"AGENTZERO_WORKSPACE_ROOT is not a folder: {folder}", hint="correct or unset the variable")
    return ["--cwd", folder]


def _print_context(arguments: list[str]) -> int:
    from ostler.cli.arguments import Parser, add_access_options, add_agent, add_model, add_workspace, run_options

    text = (
        "Print exactly what Agent Zero gets about this workspace, without contacting the server. "
        "A server with the connector has tools of its own, so that it is not told how to request them."
    )
    parser = Parser("ostler zero context", description=text)
    parser.add_argument("--run", action="store_true", help="as `ostler zero run` sends it, where nobody can approve")
    parser.add_argument("--connector", action="store_true", help="as it is sent to a server with the connector")
    for add in (add_workspace, add_agent, add_model, add_access_options):
        add(parser)
    args = parser.parse_args(arguments)

    import asyncio

    from ostler.app.zero_context import describe_workspace

    described = asyncio.run(describe_workspace(run_options(args), interactive=not args.run, connector=args.connector))
    if described:
        sys.stdout.write(f"{described}\n")
    else:
        sys.stderr.write("nothing is sent: context.enabled is false, or context.max_bytes is too small\n")
    return 0


def _change_key(name: str, arguments: list[str]) -> int:
    from ostler.cli.arguments import Parser, add_workspace

    parser = Parser(f"ostler zero {name}", description="The server is the one that the settings of the workspace name.")
    if name == "login":
        parser.add_argument(
            "--user", metavar="NAME", default="", help="store the password of this user of the web page"
        )
    add_workspace(parser)
    args = parser.parse_args(arguments)

    from ostler.app.zero_backend import server_location
    from ostler.cli.login import delete_key, store_key, store_login
    from ostler.knowledge.trusted_settings import load_settings
    from ostler.settings.project_paths import workspace_path

    origin, _ = server_location(load_settings(workspace_path(args.cwd)))
    if name == "logout":
        return delete_key(origin.address)
    return store_login(origin.address, args.user) if args.user else store_key(origin.address)
