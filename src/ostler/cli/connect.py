"""`ostler connect`: starts a chat with an Ostler server, which runs the agent loop; the tools run on this machine."""

import asyncio
import os
import sys

from ostler.cli.arguments import Parser, add_take_tools, run_options
from ostler.cli.chat import EPILOG, add_chat_options
from ostler.core.errors import UsageError

DESCRIPTION = """Start a chat with an Ostler server. The server runs the model and stores the conversation; all tools
run on this machine, in this workspace, with your permissions. SERVER is the line that `ostler serve` printed, the URL
of a server, or the host of one you are logged in to; without it, the only server you are logged in to."""


def main(arguments: list[str]) -> int:
    """Log in if that is needed, and run the chat until the user exits."""
    parser = Parser("ostler connect", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("server", metavar="SERVER", nargs="?", default="", help="pairing line, URL or host")
    parser.add_argument("--unix", metavar="FILE", default="", help="Unix socket of a server on this machine")
    parser.add_argument(
        "--allow-plain", action="store_true", help="send the token unencrypted to another machine (http://)"
    )
    parser.add_argument("-m", "--model", metavar="NAME", help="a model of the server")
    add_chat_options(parser)
    add_take_tools(parser)
    args = parser.parse_args(arguments)
    if args.server and args.unix:
        raise UsageError("a server has either a URL or a Unix socket", hint="use one of them")
    url = f"unix:{os.path.abspath(args.unix)}" if args.unix else asyncio.run(_log_in(args.server, args.allow_plain))
    args.backend = f"remote:{url}"

    from ostler.app.chat import ChatClient

    return ChatClient(run_options(args), args.resume or "", args.plain, is_default=True).run()


async def _log_in(text: str, allow_plain: bool) -> str:
    """Return what names the server. A pairing line, or a URL without a stored login, becomes a stored login first."""
    from ostler.cli.login import log_in_at
    from ostler.credentials.server_login import find_server
    from ostler.credentials.server_logins import ServerLogins
    from ostler.credentials.store import open_credentials
    from ostler.http.url import parse_server, server_url

    logins, url, _, _ = ServerLogins(open_credentials()), *text.partition("/api/agent/sessions/")
    is_new = "#" in url or ("://" in url and logins.get(server_url(parse_server(url))) is None)
    if not is_new or os.environ.get("OSTLER_SERVER_TOKEN"):
        find_server(url, logins, os.environ)
        return text
    if "#" not in url and not sys.stdin.isatty():
        raise UsageError(f"no login for {url}", hint=f"run `ostler login {url}`")
    stored_url, message = await log_in_at(url, logins, allow_plain=allow_plain)
    sys.stderr.write(message)
    return text if "#" not in text else stored_url
