"""Builds the MCP servers of a session from the settings: environment, log, caches, and the tool host that uses them."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec

from ostler.core.credentials import CredentialName, CredentialStore
from ostler.core.errors import UsageError
from ostler.core.events import PrefixBuilt
from ostler.core.protocols import BackendContext, Session, Tool, Workspace
from ostler.core.sessions import McpServerRequest
from ostler.core.tools import ToolCall, ToolSpec
from ostler.journal.active_records import latest_event
from ostler.knowledge.source_folder import SourceFolder
from ostler.knowledge.trust_items import hash_programs
from ostler.mcp.approved_tools import ApprovedTools
from ostler.mcp.connection import Connect, Connection, ConnectionHandler
from ostler.mcp.open_sources import forget_source, register_source
from ostler.mcp.server import McpServer
from ostler.mcp.server_entry import DEFAULT_CALL_TIMEOUT, DEFAULT_START_TIMEOUT, ServerEntry, read_switches
from ostler.mcp.state_report import StateReport
from ostler.mcp.tool_list_cache import ToolListCache
from ostler.mcp.tool_names import server_prefixes
from ostler.mcp.tool_search import (
    CALL_TOOL,
    SEARCH_COST,
    SEARCH_TOOL,
    USUAL_WINDOW,
    McpCallTool,
    McpSearchTool,
)
from ostler.mcp.tool_source import McpToolSource
from ostler.processes.command_environment import command_environment, path_without
from ostler.settings.effective import Settings
from ostler.settings.home import require_home
from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.problems import format_path
from ostler.settings.project_paths import cache_folder
from ostler.settings.references import fill_references, unset_variables
from ostler.settings.schema_services import McpConfig
from ostler.text.secret_masker import MASK_MARKER
from ostler.tools.call_resolution import ResolvedCall
from ostler.tools.host import CallInterceptor, LocalToolHost

MAX_LOG_BYTES = 1024 * 1024
OpenCredentials = Callable[[], CredentialStore]
WORKSPACE_REFERENCE = "{workspace}"
_SSE_PROBLEM = 'the old "sse" transport is not supported; use the URL of the server\'s streamable HTTP transport'
_OAUTH_PROBLEM = (
    'OAuth is not supported; set "oauth": false and store a token with `ostler mcp token NAME`, '
    "or set an Authorization header"
)
OUTSIDE_SANDBOX_NOTE = "MCP servers run outside the sandbox, with your rights."


class _HostSource:
    """The MCP servers as a source of a tool host, which starts and stops them only if it owns them."""

    def __init__(self, mcp: McpToolSource, tools: Callable[[], Mapping[str, Tool[Any]]], *, owns_mcp: bool) -> None:
        self._mcp = mcp
        self.tools = tools
        self._owns_mcp = owns_mcp

    def open(self, context: BackendContext, on_change: Callable[[], None]) -> None:
        if self._owns_mcp:
            self._mcp.open(context, on_change)

    async def aclose(self) -> None:
        if self._owns_mcp:
            await self._mcp.aclose()


class McpToolHost(LocalToolHost):
    """A tool host with the tools of MCP servers."""

    def __init__(
        self,
        mcp: McpToolSource,
        tools: Iterable[Tool[Any]],
        workspace: Workspace,
        hidden_tools: Callable[[], Iterable[Tool[Any]]],
        is_offered: Callable[[str], bool],
        interceptor: CallInterceptor | None,
        *,
        owns_mcp: bool,
        share: float,
    ) -> None:
        """`share` is the part of the model's context window that may be used to list the tools of servers."""
        source = _HostSource(mcp, self._mcp_tools, owns_mcp=owns_mcp)
        super().__init__(tools, workspace, hidden_tools, is_offered, interceptor, (source,))
        self._mcp = mcp
        self._owns_mcp = owns_mcp
        self._session_id = ""
        self._share = share
        self.context_window: Callable[[], int] = lambda: USUAL_WINDOW

    async def open(self, context: BackendContext) -> None:
        """Start the servers in the background; wait only for the required ones. Raises `BackendError` for these."""
        if self._owns_mcp:
            self._session_id = str(getattr(context, "id", ""))
            register_source(self._session_id, self._mcp)
        await super().open(context)
        if self._owns_mcp:
            await self._mcp.wait_required()

    def _mcp_tools(self) -> Mapping[str, Tool[Any]]:
        tools = self._mcp.tools()
        return {**tools, **self._search_tools} if self._is_searched() else tools

    def _is_searched(self) -> bool:
        """Return whether the tools are searched, because listing those that the agent has costs too much.

        A session that searched them once continues to do so: the search tools stay in its requests anyway.
        """
        cost = sum(cost for name, cost in self._mcp.costs().items() if self._is_offered(name))
        limit = max((self.context_window() or USUAL_WINDOW) * self._share, SEARCH_COST)
        return cost > limit or (cost > SEARCH_COST and self._was_searched())

    def _was_searched(self) -> bool:
        prefix = latest_event(self._context.records(), "prefix_built") if self._context else None
        return isinstance(prefix, PrefixBuilt) and any(tool["name"] == SEARCH_TOOL for tool in prefix.tools)

    @cached_property
    def _search_tools(self) -> dict[str, Tool[Any]]:
        search = McpSearchTool(self._offered_mcp_tools, self._mcp.summaries())
        return {SEARCH_TOOL: search, CALL_TOOL: McpCallTool(self._offered_mcp_tools)}

    def _offered_mcp_tools(self) -> dict[str, Tool[Any]]:
        """Return the tools that the current agent may use; the two search tools show and call no others."""
        return {name: tool for name, tool in self._mcp.tools().items() if self._is_offered(name)}

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools to list; those of MCP servers are left out if they are searched, but can be called."""
        specs = super().specs()
        if not any(spec.name == SEARCH_TOOL for spec in specs):
            return specs
        unlisted = self._mcp.tools()
        return [spec for spec in specs if spec.name not in unlisted]

    async def resolve(self, call: ToolCall) -> ResolvedCall:
        """Resolve a call; if it names a server that is being started for the first time, wait for its tools."""
        await self._mcp.wait_for(call.tool)
        return await super().resolve(call)

    async def aclose(self) -> None:
        if self._owns_mcp:
            forget_source(self._session_id)
        await super().aclose()


class ServerMaker(msgspec.Struct, frozen=True):
    """Makes servers with the settings of a project. `version` is the one that servers are told."""

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
        return McpServer(entry, connect, cache, self.version, interactive=self.interactive)


def mcp_source(cwd: Path, maker: ServerMaker, passed_in: Sequence[McpServerRequest] = ()) -> McpToolSource:
    """Return the configured servers and those that a client passed in. None of them is started yet.

    A configured server is used instead of one with the same name that was passed in.
    """
    entries = {request.name: _passed_in_entry(request, cwd, maker.settings) for request in passed_in}
    entries |= {entry.name: entry for entry in server_entries(cwd, maker.settings)}
    servers = [maker.make(entry, _WorkspacePrograms(cwd, entry.command)) for entry in entries.values()]
    return McpToolSource(servers, approved_tools, StateReport())


def _passed_in_entry(request: McpServerRequest, cwd: Path, settings: Settings) -> ServerEntry:
    """Return the entry of a server that a client passed in, such as an editor."""
    environment = command_environment(os.environ)
    folders = [] if settings.trusted else [os.path.realpath(cwd)]
    path = path_without(environment.get("PATH", os.defpath), folders)
    return ServerEntry(
        request.name,
        request.command,
        {**environment, "PATH": path, **request.env},
        str(cwd) if settings.trusted else str(require_home(os.environ)),
        request.url,
        request.headers,
        secrets=(*request.env.values(), *request.headers.values()),
        problem=_SSE_PROBLEM if request.type == "sse" else "",
        origin="the client",
        settings_digest="\0".join(f"{key}={value}" for key, value in (*request.env.items(), *request.headers.items())),
    )


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

            with_token = await asyncio.to_thread(_with_token, entry, open_credentials)
            return await connect_http(with_token, handler, os.environ)
        from ostler.mcp.stdio_connection import connect_stdio

        return await connect_stdio(entry, handler, ServerLog(entry).write)

    return connect


def _with_token(entry: ServerEntry, open_credentials: OpenCredentials) -> ServerEntry:
    """Return the entry with the stored token of its server, unless it has an Authorization header."""
    if any(name.lower() == "authorization" for name in entry.headers):
        return entry
    token = open_credentials().get(token_name(entry))
    return (
        msgspec.structs.replace(entry, headers={**entry.headers, "Authorization": f"Bearer {token}"})
        if token
        else entry
    )


def token_name(entry: ServerEntry) -> CredentialName:
    """Return the name of a server's token. It belongs to the host, so no other host gets it."""
    from ostler.http.url import parse_origin

    origin = parse_origin(entry.url)
    return CredentialName("mcp", f"{origin.scheme}://{origin.authority}")


def approved_tools(server: McpServer) -> ApprovedTools:
    """Return the approved tools of a server, which are stored in Ostler's home."""
    return ApprovedTools(require_home(os.environ) / "mcp" / f"approved-{server.entry.digest}.json")


# -- log -----------------------------------------------------------------------------------------------------------


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


# -- settings ------------------------------------------------------------------------------------------------------


def server_entries(cwd: Path, settings: Settings) -> list[ServerEntry]:
    """Return the configured servers with references filled in. An entry that cannot be used has a `problem`."""
    return [_EntryReader(cwd, settings, name).read(config) for name, config in settings.config.mcp.items()]


class _EntryReader:
    """Reads one entry. References are filled in here, because a secret is read only when it is used."""

    def __init__(self, cwd: Path, settings: Settings, name: str) -> None:
        self._cwd = str(cwd)
        self._settings = settings
        self._name = name
        # An untrusted project can disable a server of the user, but the server is still the user's.
        key = "command" if settings.config.mcp[name].command else "url"
        self._origin = settings.origin(("mcp", name, key))
        self._problem = ""

    def read(self, config: McpConfig) -> ServerEntry:
        self._problem = _problem(config)
        environment = {
            name: self._fill(value.reveal(), "environment", name) for name, value in config.environment.items()
        }
        headers = {name: self._fill(value.reveal(), "headers", name) for name, value in config.headers.items()}
        cwd = self._fill(config.cwd, "cwd") if config.cwd else self._default_folder()
        raw = [f"{key}={value.reveal()}" for key, value in (*config.environment.items(), *config.headers.items())]
        return ServerEntry(
            self._name,
            tuple(self._fill(word, "command", number) for number, word in enumerate(config.command)),
            {**self._base_environment(), **environment},
            os.path.join(self._cwd, cwd),
            self._fill(config.url, "url"),
            headers,
            (config.start_timeout_ms or DEFAULT_START_TIMEOUT * 1000) / 1000,
            (config.timeout_ms or DEFAULT_CALL_TIMEOUT * 1000) / 1000,
            config.required,
            config.enabled,
            read_switches(config.tools),
            (*environment.values(), *headers.values()),
            f"{self._origin}: {self._problem}" if self._problem else "",
            str(self._origin),
            "\0".join(raw),
        )

    def _default_folder(self) -> str:
        """Return the workspace only if it is trusted: programs such as npx and python load code from there."""
        if self._settings.trusted or self._origin.layer == "project" or not self._origin.file:
            return self._cwd
        return os.path.dirname(os.path.abspath(self._origin.file))

    def _base_environment(self) -> Mapping[str, str]:
        """Return the environment of commands, which has no secrets, and a PATH without programs of the workspace."""
        environment = command_environment(os.environ)
        trusted = self._settings.trusted or self._origin.layer == "project"
        folders = [] if trusted else [os.path.realpath(self._cwd)]
        return {**environment, "PATH": path_without(environment.get("PATH", os.defpath), folders)}

    def _fill(self, text: str, *key: str | int) -> str:
        """Fill in the references of a value. A failure becomes the entry's problem."""
        text = text.replace(WORKSPACE_REFERENCE, self._cwd)
        if "{" not in text:
            return text
        path = ("mcp", self._name, *key)
        if unset := unset_variables(text, os.environ):
            self._problem = self._problem or f"{format_path(path)} needs the variable {unset[0]}, which is not set"
            return ""
        try:
            return fill_references(text, os.environ, partial(self._folder_of, path), lambda: format_path(path))
        except UsageError as error:
            self._problem = self._problem or error.fault.message
            return ""

    def _folder_of(self, path: KeyPath) -> Path:
        """Return the folder of the file that sets a value."""
        return Path(self._settings.origin(path).file).parent


def _problem(config: McpConfig) -> str:
    """Return why an entry cannot be used, or an empty string."""
    if config.type == "sse":
        return _SSE_PROBLEM
    is_remote = config.type == "remote" or (config.type is None and bool(config.url))
    if is_remote:
        if config.oauth is not False and not any(name.lower() == "authorization" for name in config.headers):
            return _OAUTH_PROBLEM
        return "" if config.url else "a remote server needs a url"
    return "" if config.command and config.command[0] else "a local server needs a command"


# -- status --------------------------------------------------------------------------------------------------------


def status_lines(session: Session, source: McpToolSource, name: str = "") -> list[str]:
    """Return one line for each server, or for the named one: name, state, tools and error; and about the sandbox."""
    source.report_states()
    states = [state for state in session.state.servers.values() if name in ("", state.name)]
    width = max((len(state.name) for state in states), default=0)
    lines = [
        f"{state.name:<{width}}  {state.state:<8}  {_count(state.tools)}{f'  {state.detail}' * bool(state.detail)}"
        for state in states
    ]
    return [*lines, OUTSIDE_SANDBOX_NOTE] if lines and not name else lines


def _count(tools: int) -> str:
    return f"{tools} tool{'' if tools == 1 else 's'}"


ACTIONS = ("restart", "disable", "enable")


async def apply_action(session: Session, source: McpToolSource, words: Sequence[str]) -> list[str]:
    """Run `restart`, `disable` or `enable` for a server. Raises `UsageError` for anything else."""
    from ostler.text.closest_name import closest_name

    names = [status.name for status in source.statuses()]
    if len(words) != 2 or words[0] not in ACTIONS:
        raise UsageError(f"unknown arguments {' '.join(words)[:80]!r}", hint="/mcp [restart|disable|enable NAME]")
    server = source.server(words[1])
    if server is None:
        suggestion = closest_name(words[1], names)
        hint = f"did you mean {suggestion}?" if suggestion else f"available: {', '.join(names) or 'none'}"
        raise UsageError(f"there is no MCP server {words[1][:80]!r}", hint=hint)
    await (server.disable() if words[0] == "disable" else server.restart())
    return status_lines(session, source, words[1])
