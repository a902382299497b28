"""Builds and runs the server: model, database, sessions of all users."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from ostler import __version__
from ostler.app.project import FolderElsewhere
from ostler.app.server_storage import ServerPlace, open_audit_log, open_database, store_address, writing_log
from ostler.app.session_manager import LocalSessionManager
from ostler.app.tool_host import builtin_tools
from ostler.core.accounts import UserLimits
from ostler.core.errors import UsageError
from ostler.core.protocols import Session, Tool, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest
from ostler.core.store import HostedSessions
from ostler.frontends.server.config import ServingConfig
from ostler.frontends.server.hub import ServerParts
from ostler.frontends.server.hubs import PROJECT, SessionHubs
from ostler.frontends.server.listening import ListenOptions, check_listening, split_address
from ostler.frontends.server.server_access import AccessOptions, ServerAccess
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.knowledge.prompt_sections import PromptSection
from ostler.knowledge.trusted_settings import load_settings
from ostler.models.model_choice import ModelChoice, choose_model
from ostler.models.model_types import ModelClient
from ostler.settings.effective import Settings
from ostler.settings.model_catalogue import list_candidates
from ostler.settings.run_options import RunOptions
from ostler.settings.schema_services import ServerConfig
from ostler.storage.sqlite_accounts import SqliteAccounts
from ostler.text.stderr import notify
from ostler.tools.host import LocalToolHost
from ostler.tools.task import TaskTool
from ostler.wire.frames_shared import RemoteWorkspace

MAX_FILES = 65_536  # open files of the server
THREADS = 64  # that wait for the database, which commits the work of all of them together


class SessionOpener(msgspec.Struct, frozen=True):
    """Opens the sessions of all users with the server's model."""

    options: RunOptions
    model: ModelChoice
    sessions: HostedSessions
    settings: Settings

    async def open(
        self, owner: str, request: OpenSessionRequest, tools: ToolRunner, workspace: RemoteWorkspace | None
    ) -> Session:
        store = self.sessions.of(owner)
        folder = FolderElsewhere(_prompt_sections(request.cwd, workspace), _agents(workspace), PROJECT)
        manager = LocalSessionManager(self.options, notify, self.model, store=store, elsewhere=folder)
        return await manager.open(request, tools=tools)

    async def open_chat(self, owner: str) -> Session:
        manager = LocalSessionManager(msgspec.structs.replace(self.options, ephemeral=True), notify, self.model)
        request = OpenSessionRequest("/", interactive=False)
        return await manager.open(request, tools=_tools_without_workspace(()))

    def session_tools(self) -> ToolRunner:
        """Return the tools that act on the session."""
        all_tools = (*builtin_tools(self.settings), TaskTool())
        return _tools_without_workspace([tool for tool in all_tools if tool.spec.runs_in == "session"])


def _tools_without_workspace(tools: Sequence[Tool[Any]]) -> ToolRunner:
    return LocalToolHost(tools, cast(Workspace, None), place="session")


def _prompt_sections(root: str, workspace: RemoteWorkspace | None) -> list[PromptSection]:
    """Return what the client's machine adds to the system prompt; for a bare tool host only its folder."""
    if workspace is None:
        return [PromptSection("environment", "the client", f"Workspace: {root}")]
    return [PromptSection(section.name, section.origin, section.text) for section in workspace.sections]


def _agents(workspace: RemoteWorkspace | None) -> dict[str, AgentDefinition]:
    """Return the client's agents that can be read. The client decides each of their calls."""
    agents: dict[str, AgentDefinition] = {}
    for data in workspace.agents if workspace else ():
        with suppress(msgspec.ValidationError):
            agent = msgspec.convert(data, AgentDefinition)
            agents[agent.name] = msgspec.structs.replace(agent, model="", hidden=False, origin="the client")
    return agents


def make_hubs(
    options: RunOptions,
    model: ModelChoice,
    sessions: HostedSessions,
    settings: Settings,
    config: ServingConfig,
    limits: Callable[[str], UserLimits] = lambda user: UserLimits(),
) -> SessionHubs:
    """Return the sessions of a server."""
    allowed = settings.config.server.models
    opener = SessionOpener(options, limit_models(model, allowed) if allowed else model, sessions, settings)
    names = allowed or tuple(candidate.entry.name for candidate in list_candidates(settings))
    parts = ServerParts(config, opener.open, opener.open_chat, __version__, opener.session_tools, names)
    return SessionHubs(sessions, parts, limits)


def limit_models(model: ModelChoice, names: Sequence[str]) -> ModelChoice:
    """Return the choice with only these names to switch to, besides the chosen model."""
    chosen = model.make("").name

    def make(name: str) -> ModelClient:
        if name and name != chosen and name not in names:
            raise UsageError(f"the model {name[:80]!r} cannot be chosen; available: {', '.join(names)}")
        return model.make(name)

    return msgspec.structs.replace(model, make=make)


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `ostler serve`; empty values are taken from the settings."""

    bind: str = ""
    certificate: str = ""
    key: str = ""
    allow_plain: bool = False
    unix: str = ""
    urls: tuple[str, ...] = ()
    has_pairing: bool = True
    database: str = ""
    expire_days: float = 30.0


def run_server(options: RunOptions, serve: ServeOptions) -> int:
    """Serve until a signal arrives. Return the exit status. Raises `OstlerError`."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UsageError("the server's packages are missing", hint="install ostler[server]") from None
    _raise_file_limit()
    return asyncio.run(_serve(options, serve))


def _raise_file_limit() -> None:
    """Allow as many connections as the system permits; many systems start programs with 1,024 open files."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(options: RunOptions, serve: ServeOptions) -> int:
    from ostler.storage.sqlite_store import SqliteSessions

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "server"))
    settings = load_settings(Path(options.cwd))
    server = settings.config.server
    access_plan, path = access_options(serve, server), serve.database or _stored_in(server)
    if access_plan.tcp:
        check_listening(access_plan.tcp)
    model = await choose_model(settings, options.model, os.environ)
    with (
        closing(open_database(path)) as database,
        writing_log(settings, path, options.model.get("api_key", "")),
        closing(ServerAccess(access_plan, accounts := SqliteAccounts(database), open_audit_log(path))) as access,
    ):
        if access.url:
            store_address(ServerPlace(access.url, access.port, access.fingerprint), path)
        config, sessions = serving_config(serve, settings), SqliteSessions(database)
        hubs = make_hubs(options, model, sessions, settings, config, accounts.limits)
        return await _serve_sessions(hubs, access, model.description)


async def _serve_sessions(hubs: SessionHubs, access: ServerAccess, model: str) -> int:
    from ostler.frontends.server.asgi_app import make_app
    from ostler.frontends.server.http_server import serve_until_signal

    def announce() -> None:
        lines = [f"serving {model}", *access.announcement()]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    certificate, key = access.tls_files
    app = access.guard(make_app(hubs))
    return await serve_until_signal(app, hubs, access.sockets, announce, certificate=certificate, key=key)


def serving_config(serve: ServeOptions, settings: Settings) -> ServingConfig:
    """Return the limits of the server."""
    server, standard = settings.config.server, ServingConfig()
    limits = server.limits
    return ServingConfig(
        expire_days=serve.expire_days,
        heartbeat=server.heartbeat_seconds or standard.heartbeat,
        host_wait=server.host_wait_seconds or standard.host_wait,
        call_timeout=server.call_seconds or standard.call_timeout,
        messages_per_minute=limits.messages_per_minute or standard.messages_per_minute,
        calls_per_minute=limits.tool_calls_per_minute or standard.calls_per_minute,
        max_output=min(limits.output_bytes or standard.max_output, standard.max_frame // 2),
        open_sessions_per_user=limits.sessions or standard.open_sessions_per_user,
    )


def access_options(serve: ServeOptions, config: ServerConfig) -> AccessOptions:
    """Return where to listen and who may connect. Raises `UsageError`."""
    of_port = {"--tls-cert": serve.certificate, "--tls-key": serve.key, "--allow-plain": serve.allow_plain}
    unused = [flag for flag, value in {**of_port, "--url": serve.urls}.items() if value]
    if unused and serve.unix and not serve.bind:
        raise UsageError(f"{unused[0]} has no meaning for a Unix socket", hint="add --bind HOST:PORT, or leave it out")
    return AccessOptions(
        tcp=listen_options(serve, config) if serve.bind or not serve.unix else None,
        unix=serve.unix,
        urls=serve.urls,
        origins=config.origins,
        has_pairing=serve.has_pairing,
    )


def listen_options(serve: ServeOptions, config: ServerConfig) -> ListenOptions:
    """Return the address and the certificate. Raises `UsageError`."""
    host, port = split_address(serve.bind or config.bind)
    tls = config.tls
    return ListenOptions(
        host=host,
        port=port,
        certificate=serve.certificate or (tls.cert if tls and not serve.key else ""),
        key=serve.key or (tls.key if tls and not serve.certificate else ""),
        allow_plain=serve.allow_plain,
    )


def _stored_in(config: ServerConfig) -> str:
    store = str(config.store or "")
    if "://" in store:
        raise UsageError("server.store must be a SQLite file", hint="other databases are not supported yet")
    return store
