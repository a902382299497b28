"""One configured server: started when needed, shared by all calls, restarted a limited number of times."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ostler.core.errors import BackendError, OstlerError, ToolError
from ostler.core.events import ServerStateChanged
from ostler.mcp.client import Ask, McpClient
from ostler.mcp.connection import Connect, ConnectionHandler, LoginNeeded, OnProgress, ServerGone
from ostler.mcp.server_entry import ServerEntry
from ostler.mcp.tool_list_cache import CachedServer, ServerOffers, ToolListCache
from ostler.text.sanitise import sanitise
from ostler.wire.jsonrpc import RpcError
from ostler.wire.mcp import (
    CALL_TOOL,
    GET_PROMPT,
    READ_RESOURCE,
    Era,
    ServerDescription,
    ServerPrompt,
    ServerResource,
    ServerTool,
)

MAX_TOOLS = 128
MAX_FAILURES = 3
MAX_ERROR = 500
MIN_REFRESH_PAUSE, MAX_REFRESH_PAUSE = 0.2, 60.0  # seconds between two lists of a server that announces changes
MAX_INSTRUCTIONS = 2000


class McpServer:
    """A configured server. `on_change` is called after each change of its state or its tools."""

    def __init__(
        self,
        entry: ServerEntry,
        connect: Connect,
        cache: ToolListCache,
        version: str,
        *,
        interactive: bool,
        on_change: Callable[["McpServer"], None] = lambda server: None,
        wait_for_login: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`wait_for_login` returns when the user may have logged in to a remote server."""
        self.entry = entry
        self.on_change = on_change
        self.description: ServerDescription | None = None
        self.tools: tuple[ServerTool, ...] = ()
        self.offers = ServerOffers()
        self.instructions = ""
        self._given_instructions = ""
        self.left_out = 0
        self._connect = connect
        self._cache = cache
        self._version = version
        self._interactive = interactive
        self._enabled = entry.enabled
        self._client: McpClient | None = None
        self._starting: asyncio.Task[McpClient] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._is_outdated = False
        self._listing: asyncio.Task[None] | None = None
        self._failures = 0
        self._needs_login = False
        self._wait_for_login = wait_for_login
        self._login_watch: asyncio.Task[None] | None = None
        self._error = entry.problem
        self._era: Era | None = None
        self._is_fresh = False
        self._listed: tuple[ServerTool, ...] = ()
        self._valid_seconds = 0.0
        self._load_cache()

    def _load_cache(self) -> None:
        own = self._cache.load(self._cache_key(interactive=self._interactive))
        cached = own or self._cache.load(self._cache_key(interactive=not self._interactive))
        if cached:
            self._era = cached.era
            self._set_tools(cached.tools)
            self.instructions, self.offers = cached.instructions, cached.offers
            self._is_fresh = own is not None and own.is_fresh

    def _cache_key(self, *, interactive: bool) -> str:
        """Return the name of the cached list: a server may offer other tools to a client that can ask the user."""
        return f"{self.entry.digest}-interactive" if interactive else self.entry.digest

    # -- state ---------------------------------------------------------------------------------------------------

    @property
    def status(self) -> ServerStateChanged:
        """The state of the server. `detail` is the error, or what is known about the server."""
        name, count = self.entry.name, len(self.tools)
        if not self._enabled:
            return ServerStateChanged(name, "disabled")
        if self._starting:
            return ServerStateChanged(name, "starting", "", count)
        if self._client and not (closed := self._client.connection.closed):
            return ServerStateChanged(name, "ready", self._describe(), count)
        error = self._error or (shorten(closed) if self._client else "")
        return ServerStateChanged(name, "failed" if error else "stopped", error, count)

    @property
    def is_usable(self) -> bool:
        """Whether its tools can be called: it is enabled and did not fail too often."""
        return self._enabled and not self.entry.problem and self._failures < MAX_FAILURES

    @property
    def is_listed(self) -> bool:
        """Whether its known tools are offered; a call of a server that failed too often returns the reason."""
        return self._enabled and not self.entry.problem

    @property
    def needs_start(self) -> bool:
        """Whether it should be started in the background, because its current tools are not known."""
        return self.is_usable and not self._is_fresh

    def _describe(self) -> str:
        found = self.description
        return f"{found.name} {found.version} (MCP {found.protocol})".strip() if found else ""

    def _changed(self, error: str = "") -> None:
        self._error = shorten(error)
        self.on_change(self)

    def _set_tools(self, tools: Sequence[ServerTool]) -> None:
        allowed = [tool for tool in tools if self.entry.allows_tool(tool.name)]
        self.tools = tuple(allowed[:MAX_TOOLS])
        self.left_out = len(allowed) - len(self.tools)

    # -- start and stop ------------------------------------------------------------------------------------------

    async def client(self) -> McpClient:
        """Return the connection, starting the server if necessary; parallel callers share one start.

        Raises `ToolError` if it is disabled, cannot start, or has failed too often.
        """
        if self._client and not self._client.connection.closed:
            return self._client
        if self._starting is None:
            self._check_usable()
            if self._client:  # it ended since its last call
                self._failures += not self._needs_login
                self._check_usable()
            self._starting = asyncio.create_task(self._start(), name=f"start MCP server {self.entry.name}")
            self._starting.add_done_callback(_retrieve)
            self._changed()
        try:
            return await asyncio.shield(self._starting)
        except OstlerError as error:
            raise self._failed_error(str(error)) from None

    def _check_usable(self) -> None:
        name = self.entry.name
        if not self._enabled:
            raise ToolError(f"the MCP server {name} is disabled", code="server_disabled")
        if not self.is_usable:
            raise self._failed_error(self._error)

    def _failed_error(self, reason: str) -> ToolError:
        hint = "it stays off until the user restarts it (/mcp restart)" if self._failures >= MAX_FAILURES else ""
        return ToolError(f"the MCP server {self.entry.name} failed: {shorten(reason)}", code="server_failed", hint=hint)

    async def start_in_background(self) -> None:
        """Start the server; a failure is only recorded."""
        try:
            await self.client()
        except ToolError:
            return

    async def _start(self) -> McpClient:
        error = ""
        try:
            await self._close_client()
            async with asyncio.timeout(self.entry.start_timeout):
                client = await self._open_client()
            self._client, self._needs_login = client, False
            return client
        except TimeoutError:
            error = f"it did not start within {self.entry.start_timeout:g} s"
            raise BackendError(error, code="timeout") from None
        except LoginNeeded as failure:
            error = str(failure)
            self._watch_for_login()
            raise
        except OstlerError as failure:
            error = str(failure)
            raise
        finally:
            self._starting = None
            self._failures += bool(error) and not self._needs_login
            self._changed(error)

    def _watch_for_login(self) -> None:
        """Start again when the user has logged in. A missing login is not counted as a failure."""
        self._needs_login = True
        if self._wait_for_login and (self._login_watch is None or self._login_watch.done()):
            work = self._start_after_login(self._wait_for_login)
            self._login_watch = asyncio.create_task(work, name=f"login to MCP server {self.entry.name}")

    async def _start_after_login(self, wait: Callable[[], Awaitable[None]]) -> None:
        while self._needs_login and self._enabled:
            await wait()
            await self.start_in_background()

    async def _open_client(self) -> McpClient:
        """Connect, agree on the protocol and list the tools. A legacy server may end because of the probe."""
        try:
            return await self._try_open(self._era)
        except ServerGone:
            if self._era:
                self._era = None  # probe it at the next start
                raise
            return await self._try_open("legacy")

    async def _try_open(self, era: Era | None) -> McpClient:
        handler = ConnectionHandler()
        connection = await self._connect(handler)
        client = McpClient(connection, handler, self._version, interactive=self._interactive)
        try:
            description = await client.start(self.entry.start_timeout, era)
            has_tools = "tools" in description.capabilities
            tools = await client.list_tools(self.entry.start_timeout) if has_tools else []
        except RpcError as error:
            await client.aclose()
            raise BackendError(f"it answered with an error: {error.details}", code="protocol") from None
        except BaseException:
            await client.aclose()
            raise
        client.on_tools_changed = self._refresh
        client.on_offers_changed = lambda: self._list_offers(client)
        handler.on_end = lambda reason: self._note_end(client, reason)
        self.description, self._era, self.instructions = description, description.era, description.instructions
        self.offers = msgspec.structs.replace(self.offers, has_resources="resources" in description.capabilities)
        self._accept_tools(tools, client)
        self._list_offers(client)
        return client

    def _accept_tools(self, tools: Sequence[ServerTool], client: McpClient) -> None:
        """Use and store a tool list that the server sent."""
        self._valid_seconds = client.tools_valid_seconds
        self._set_tools(tools)
        self._is_fresh = True
        self._listed = tuple(tools)
        self._save_cache()

    def _save_cache(self) -> None:
        cached = CachedServer(
            self._era or "legacy", self._listed, self.instructions, time.time(), self.offers, self._valid_seconds
        )
        self._cache.save(self._cache_key(interactive=self._interactive), cached)

    # -- prompts and resources -----------------------------------------------------------------------------------

    def _list_offers(self, client: McpClient) -> None:
        """List prompts and resources in the background: they are needed later than the tools."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._load_offers(client), name=f"prompts of {self.entry.name}")

    async def _load_offers(self, client: McpClient) -> None:
        """List prompts and resources. One that cannot be listed is left out and does not make the server fail."""
        capabilities, timeout = client.description.capabilities, self.entry.start_timeout
        prompts: list[ServerPrompt] = []
        resources: list[ServerResource] = []
        with suppress(RpcError, OstlerError):
            prompts = await client.list_prompts(timeout) if "prompts" in capabilities else []
        with suppress(RpcError, OstlerError):
            resources = await client.list_resources(timeout) if "resources" in capabilities else []
        offers = ServerOffers(tuple(prompts), tuple(resources), "resources" in capabilities)
        if offers != self.offers:
            self.offers = offers
            self._save_cache()
            self.on_change(self)

    async def load_offers(self) -> ServerOffers:
        """Return what the running server offers, starting it if necessary. Raises `ToolError`."""
        await self.client()
        if self._listing:
            await asyncio.wait({self._listing})
        return self.offers

    async def get_prompt(self, name: str, arguments: Mapping[str, str], ask: Ask) -> dict[str, Any]:
        """Return the messages of a prompt. Raises `ToolError`."""
        return await self._read(GET_PROMPT, {"name": name, "arguments": dict(arguments)}, ask)

    async def read_resource(self, uri: str, ask: Ask) -> dict[str, Any]:
        """Return the contents of a resource. Raises `ToolError`."""
        return await self._read(READ_RESOURCE, {"uri": uri}, ask)

    async def _read(self, method: str, params: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
        try:
            return await self._run(self.entry.name, method, params, ask)
        except ServerGone as error:
            raise self._failed_error(error.fault.message) from None

    def _refresh(self) -> None:
        """List the tools again, because the server says that they changed."""
        self._is_outdated = True
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh_tools(), name=f"tools of {self.entry.name}")

    async def _refresh_tools(self) -> None:
        """List the tools until no change was announced meanwhile. A server that always does is listed less often."""
        pause = MIN_REFRESH_PAUSE
        while self._is_outdated:
            self._is_outdated = False
            await self._list_again()
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_REFRESH_PAUSE)

    async def _list_again(self) -> None:
        client = self._client
        if client is None:
            return
        try:
            self._accept_tools(await client.list_tools(self.entry.start_timeout), client)
        except (RpcError, OstlerError) as error:
            self._changed(f"its tools could not be listed: {error}")
            return
        self._changed()

    async def restart(self) -> None:
        """Stop the server, forget its failures and start it again."""
        await self._stop()
        self._failures, self._enabled = 0, True
        self._error = self.entry.problem
        await self.start_in_background()

    async def disable(self) -> None:
        await self._stop()
        self._enabled = False
        self._changed()

    async def aclose(self) -> None:
        """Stop the server; nothing of it is left afterwards."""
        self.on_change = lambda server: None
        await self._stop()

    async def _stop(self) -> None:
        running = (self._starting, self._refreshing, self._listing, self._login_watch)
        tasks = [task for task in running if task and not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._close_client()

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client:
            await client.aclose()

    def take_instructions(self) -> str:
        """Return the server's instructions for the model, shortened; each text once."""
        text = shorten(self.instructions, MAX_INSTRUCTIONS)
        if text == self._given_instructions:
            return ""
        self._given_instructions = text
        return text

    # -- calls ---------------------------------------------------------------------------------------------------

    def find_tool(self, name: str) -> ServerTool | None:
        """Return the current declaration of a tool, or None if the server has no such tool."""
        return next((tool for tool in self.tools if tool.name == name), None)

    async def call(
        self, name: str, arguments: Mapping[str, Any], ask: Ask, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """Call a tool. Raises `ToolError`, or `ServerGone` if the server ended during the call."""
        result = await self._run(name, CALL_TOOL, {"name": name, "arguments": dict(arguments)}, ask, on_progress)
        self._failures = 0
        return result

    async def _run(
        self, name: str, method: str, params: Mapping[str, Any], ask: Ask, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """Send a request. Its errors become `ToolError`, except `ServerGone`, which is also recorded."""
        client = await self.client()
        try:
            return await client.run(method, params, timeout=self.entry.call_timeout, ask=ask, on_progress=on_progress)
        except ServerGone as error:
            self._note_end(client, error.fault.message)
            raise
        except RpcError as error:
            raise ToolError(f"{name}: {shorten(error.details)}", code="server_error") from None
        except LoginNeeded as error:
            self._watch_for_login()
            self._note_end(client, str(error))
            raise ToolError(error.fault.message, code=error.fault.code, hint=error.fault.hint) from None
        except BackendError as error:
            raise ToolError(error.fault.message, code=error.fault.code) from None

    def _note_end(self, client: McpClient, reason: str) -> None:
        """Record that the server ended; parallel calls report the same end once."""
        if self._client is client and not self._error:
            self._changed(reason)


def _retrieve(task: asyncio.Task[McpClient]) -> None:
    """Mark the error of a start as handled: it is part of the server's state."""
    if not task.cancelled():
        task.exception()


def shorten(text: str, limit: int = MAX_ERROR) -> str:
    """Return a text of a server without control characters, shortened."""
    cleaned = sanitise(text).strip()
    return cleaned if len(cleaned) <= limit else f"{cleaned[:limit]}…"
