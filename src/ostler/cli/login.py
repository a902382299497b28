"""`ostler login` and `ostler logout`: store or delete the token of an Ostler server, or the key of Agent Zero."""

import asyncio
import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from ostler.cli.arguments import Parser
from ostler.core.errors import UsageError

if TYPE_CHECKING:
    from ostler.credentials.agent_zero import ZeroCredentials
    from ostler.credentials.server_logins import ServerLogins

DESCRIPTION = """Store the token of an Ostler server after the server has accepted it. The token or a pairing code is
read from the terminal or standard input; a pairing line (URL#CODE) needs neither. Without URL, list the servers."""


def main(arguments: list[str]) -> int:
    """Log in, or list the logins."""
    parser = Parser("ostler login", description=DESCRIPTION)
    parser.add_argument("url", metavar="URL", nargs="?", default="", help="URL of the server, or its pairing line")
    parser.add_argument(
        "--allow-plain", action="store_true", help="send the token unencrypted to another machine (http://)"
    )
    _add_agent_zero(parser)
    args = parser.parse_args(arguments)
    if not args.url:
        return _list()
    return store_key(_zero_address(args.url)) if args.agent_zero else _log_in(args)


def logout(arguments: list[str]) -> int:
    """Delete a login."""
    parser = Parser("ostler logout", description="Revoke the token at the server and delete it here.")
    parser.add_argument("url", metavar="URL", help="URL of the server")
    _add_agent_zero(parser)
    args = parser.parse_args(arguments)
    return delete_key(_zero_address(args.url)) if args.agent_zero else _log_out(args)


def _add_agent_zero(parser: Parser) -> None:
    parser.add_argument("--agent-zero", action="store_true", help="the server is Agent Zero, which has an API key")


def _log_in(args: Namespace) -> int:
    from ostler.credentials.server_logins import ServerLogins
    from ostler.credentials.store import open_credentials

    _, message = asyncio.run(log_in_at(args.url, ServerLogins(open_credentials()), allow_plain=args.allow_plain))
    sys.stdout.write(message)
    return 0


async def log_in_at(url: str, logins: "ServerLogins", *, allow_plain: bool) -> tuple[str, str]:
    """Ask for a token if the URL has no code, and store the login. Return the server's URL and a line for the user."""
    from ostler.cli.stdin import read_secret
    from ostler.credentials.server_login import log_in
    from ostler.text.sanitise import sanitise

    def read_token(name: str) -> str:
        return read_secret(f"Token or pairing code for {name}: ")

    known, user = await log_in(url, logins, os.environ, read_token, allow_plain=allow_plain)
    return known.url, f"logged in to {known.url}{f' as {sanitise(user)[:64]}' if user else ''}\n"


def _log_out(args: Namespace) -> int:
    from ostler.credentials.server_login import log_out
    from ostler.credentials.server_logins import ServerLogins
    from ostler.credentials.store import open_credentials

    result = asyncio.run(log_out(args.url, ServerLogins(open_credentials()), os.environ))
    sys.stdout.write(f"logged out: {result}\n")
    return 0


def _list() -> int:
    from ostler.credentials.server_logins import ServerLogins
    from ostler.credentials.store import open_credentials

    urls = ServerLogins(open_credentials()).urls()
    sys.stdout.write("".join(f"{url}\n" for url in urls) or "no servers; log in with `ostler login URL`\n")
    return 0


def store_key(address: str) -> int:
    """Store the API key of the Agent Zero server at HOST:PORT."""
    from ostler.cli.stdin import read_secret

    key = read_secret(f"API key of Agent Zero at {address}: ").strip()
    if not key or not key.isprintable():
        raise UsageError("the key is empty or contains control characters")
    _zero_credentials(address).set_api_key(key)
    sys.stdout.write(f"stored the key of {address}\n")
    return 0


def store_login(address: str, user: str) -> int:
    """Store user and password of the web page of the Agent Zero server at HOST:PORT."""
    from ostler.cli.stdin import read_secret

    password = read_secret(f"password of {user} at {address}: ").rstrip("\r\n")
    if not password or not user.isprintable():
        raise UsageError("the password is empty, or the user contains control characters")
    _zero_credentials(address).set_login(user, password)
    sys.stdout.write(f"stored the login of {user} at {address}\n")
    return 0


def delete_key(address: str) -> int:
    """Delete the API key of the Agent Zero server at HOST:PORT."""
    what = "key or login"
    found = _zero_credentials(address).delete()
    sys.stdout.write(f"deleted the {what} of {address}\n" if found else f"there is no {what} of {address}\n")
    return 0


def _zero_credentials(address: str) -> "ZeroCredentials":
    from ostler.credentials.agent_zero import ZeroCredentials
    from ostler.credentials.store import open_credentials

    return ZeroCredentials(open_credentials(), address)


def _zero_address(url: str) -> str:
    from ostler.http.url import parse_origin

    return parse_origin(url).address
