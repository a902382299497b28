"""Builds the MCP servers of a session from the settings: how to connect, with which token, log and caches."""

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ostler.core.credentials import CredentialStore
from ostler.core.errors import UsageError
from ostler.core.sessions import McpServerRequest
from ostler.knowledge.source_folder import SourceFolder
from ostler.knowledge.trust_items import hash_programs
from ostler.mcp.approved_tools import ApprovedTools
from ostler.mcp.configured_entries import passed_in_entry, server_entries
from ostler.mcp.connection import Connect, Connection, ConnectionHandler
from ostler.mcp.server import McpServer
from ostler.mcp.server_entry import ServerEntry
from ostler.mcp.tool_list_cache import ToolListCache
from ostler.mcp.tool_names import server_prefixes
from ostler.mcp.tool_source import McpToolSource
from ostler.settings.effective import Settings
from ostler.settings.home import require_home
from ostler.settings.project_paths import cache_folder
from ostler.text.secret_masker import MASK_MARKER

LOGIN_POLL_SECONDS = 1.0  # between two looks at the store while a server needs a login
OpenCredentials = Callable[[], CredentialStore]
MAX_LOG_BYTES = 1024 * 1024


def log_file(name: str) -> Path:
    """Return the file with a server's error output."""
    return require_home(os.environ) / "logs" / "mcp" / f"{server_prefixes([name])[name]}.log"


class ServerLog:
    """Writes the error output of one start to the server's log, up to a limit and without the secrets it was given."""

    def __init__(self, entry: ServerEntry) -> None:
        self._path = log_file(entry.name)
        self._secrets = [secret.encode() for secret in entry.secrets if len(secret) >= 8]
        self._left = MAX_LOG_BYTES
        self._started = False

    def write(self, data: bytes) -> None:
        if self._left <= 0:
            return
        from ostler.journal.log_file import LogFile

        for secret in self._secrets:
            data = data.replace(secret, MASK_MARKER.encode())
        if not self._started:
            self._started = True
            data = f"--- started by process {os.getpid()}\n".encode() + data
        self._left -= len(data)
        if self._left <= 0:
            data += b"\n[more output is not logged]\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            LogFile(self._path, MAX_LOG_BYTES, 1).append(data)
        except OSError:
            self._left = 0  # a failing log must not stop the server


class ServerMaker(msgspec.Struct, frozen=True):
    """Makes servers with the settings of a project. `version` is sent to the servers."""

    settings: Settings
    open_credentials: OpenCredentials
    version: str
    interactive: bool = False

    def make(self, entry: ServerEntry, programs: "_WorkspacePrograms | None" = None) -> McpServer:
        """Return a server that is not started yet. It does not start if its `programs` have changed."""
        cache, connect = (
            ToolListCache(cache_folder(self.settings) / "mcp"),
            _connect_to(entry, programs, self.open_credentials),
        )
        wait = partial(_wait_for_change, self.open_credentials) if entry.url else None
        return McpServer(entry, connect, cache, self.version, interactive=self.interactive, wait_for_login=wait)


def mcp_source(cwd: Path, maker: ServerMaker, passed_in: Sequence[McpServerRequest] = ()) -> McpToolSource:
    """Return the configured servers and those that a client passed in. None of them is started yet.

    A configured server is used instead of one with the same name that was passed in.
    """
    entries = {request.name: passed_in_entry(request, cwd, maker.settings) for request in passed_in}
    entries |= {entry.name: entry for entry in server_entries(cwd, maker.settings)}
    servers = [maker.make(entry, _WorkspacePrograms(cwd, entry.command)) for entry in entries.values()]
    return McpToolSource(servers, approved_tools)


class _WorkspacePrograms:
    """The files of the workspace that a server's command names, as they were when the session started.

    A model could change such a file, and the server runs outside the sandbox.
    """

    def __init__(self, cwd: Path, command: Sequence[str]) -> None:
        self._folder = SourceFolder(str(cwd), "project", [])
        self._command = command
        self._hashes = hash_programs(self._folder, command)

    def check(self) -> None:
        """Raise `UsageError` if one of the files has changed."""
        now = hash_programs(self._folder, self._command)
        changed = [path for path in {**self._hashes, **now} if self._hashes.get(path) != now.get(path)]
        if changed:
            raise UsageError(
                f"{changed[0]} changed after the session started, so the server is not started",
                hint="check the file, then start a new session",
            )


def _connect_to(entry: ServerEntry, programs: _WorkspacePrograms | None, open_credentials: OpenCredentials) -> Connect:
    async def connect(handler: ConnectionHandler) -> Connection:
        if entry.problem:
            raise UsageError(entry.problem)
        if programs:
            programs.check()
        if entry.url:
            from ostler.mcp.http_connection import connect_http
            from ostler.mcp.oauth_access import RemoteAccess

            folder = require_home(os.environ) / "mcp"
            access = None if entry.has_authorization else RemoteAccess(entry, open_credentials, os.environ, folder)
            return await connect_http(entry, handler, os.environ, access)
        from ostler.mcp.stdio_connection import connect_stdio

        return await connect_stdio(entry, handler, ServerLog(entry).write)

    return connect


async def _wait_for_change(open_credentials: OpenCredentials) -> None:
    """Return when the stored tokens change, for example because the user logged in."""
    store = await asyncio.to_thread(open_credentials)
    before = store.version()
    while store.version() == before:  # noqa: ASYNC110 - another process changes the file
        await asyncio.sleep(LOGIN_POLL_SECONDS)


def approved_tools(server: McpServer) -> ApprovedTools:
    """Return the approved tools of a server, which are stored in Ostler's home."""
    return ApprovedTools(require_home(os.environ) / "mcp" / f"approved-{server.entry.digest}.json")
