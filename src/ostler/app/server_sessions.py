"""The user's sessions at the servers that this machine knows."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from ostler.backends.remote.server import SESSIONS, RemoteServer, RemoteSession, ServerAddress
from ostler.core.errors import OstlerError
from ostler.credentials.server_login import UNIX, KnownServer, find_server
from ostler.credentials.server_logins import ServerLogins
from ostler.credentials.store import open_credentials

LIST_SECONDS = 3.0


class ServerSession(msgspec.Struct, frozen=True):
    """A session with the name of the backend that attaches to it, and the server."""

    session: RemoteSession
    backend: str
    server: str


def known_servers(backend: str) -> list[str]:
    """Return what names the servers: those with a login, and the Unix socket of a backend."""
    urls = list(ServerLogins(open_credentials()).urls())
    name = backend.removeprefix("remote:")
    return [*urls, name] if backend != name and name.startswith(UNIX) else urls


async def list_server_sessions(backend: str) -> Sequence[ServerSession]:
    """Return the sessions of all known servers. A server that cannot be reached is left out."""
    lists = await asyncio.gather(*map(_list, await asyncio.to_thread(known_servers, backend)))
    return [session for sessions in lists for session in sessions]


async def list_sessions_of(name: str) -> list[ServerSession]:
    """Return the sessions of a server by its URL, host or socket; without a name, of the only one that is known.

    Raises `OstlerError`.
    """
    known = await asyncio.to_thread(_find, name)  # a keyring may wait until the user unlocks it
    return [_entry(session, known) for session in await _fetch(known)]


async def _list(name: str) -> list[ServerSession]:
    try:
        async with asyncio.timeout(LIST_SECONDS):
            return await list_sessions_of(name)
    except (OstlerError, TimeoutError):
        return []


def _find(name: str) -> KnownServer:
    return find_server(name, ServerLogins(open_credentials()), os.environ)


async def _fetch(known: KnownServer) -> Sequence[RemoteSession]:
    address = ServerAddress(known.origin, unix=known.unix)
    async with aclosing(RemoteServer(address, known.dialer(os.environ), known.headers())) as server:
        return await server.sessions()


def _entry(session: RemoteSession, known: KnownServer) -> ServerSession:
    backend = f"remote:{known.url}{SESSIONS}/{session.session_id}"
    return ServerSession(session, backend, os.path.basename(known.unix) or known.origin.host)
