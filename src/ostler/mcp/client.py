"""The client side of the protocol: finds the server's era, lists its tools, calls them and answers its questions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from ostler.core.errors import BackendError
from ostler.core.permission import Question, QuestionReply
from ostler.mcp.connection import Connection, ConnectionHandler, OnProgress, ServerTimeout
from ostler.text.sanitise import sanitise
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, RpcError
from ostler.wire.mcp import (
    DISCOVER,
    ELICIT,
    INITIALIZE,
    INITIALIZED,
    LEGACY_VERSIONS,
    LIST_PROMPTS,
    LIST_RESOURCES,
    LIST_TEMPLATES,
    LIST_TOOLS,
    LISTEN,
    META,
    MODERN_ERRORS,
    MODERN_VERSION,
    PROMPTS_CHANGED,
    RESOURCES_CHANGED,
    TOOLS_CHANGED,
    UNSUPPORTED_VERSION,
    URL_REQUIRED,
    Era,
    ServerDescription,
    ServerPrompt,
    ServerResource,
    ServerTool,
    describe_discovery,
    describe_handshake,
    read_prompt,
    read_resource_entry,
    read_tool,
    request_meta,
    supported_versions,
)

PROBE_SECONDS = 5.0  # a legacy server may not answer an unknown request at all
MAX_PAGES = 100
MAX_VALID_MS = 10**12
MAX_TOOLS = MAX_RESOURCES = 1000
MAX_PROMPTS = 200
CAPABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}

Ask = Callable[[Question], Awaitable[QuestionReply]]
ListKind = Literal["tools", "prompts", "resources"]
T = TypeVar("T")
MAX_QUESTIONS = 10
MAX_TEXT = 4000
MAX_LABEL = 300
MAX_FORM_BYTES = 16 * 1024
MAX_DEPTH = 10
_LABELS = ("title", "description")


class McpClient:
    """A connected server. `on_tools_changed` is called when the server announces a new tool list, and
    `on_offers_changed` when it announces new prompts or resources."""

    def __init__(self, connection: Connection, handler: ConnectionHandler, version: str, *, interactive: bool) -> None:
        self.connection = connection
        self.description = ServerDescription("legacy", "")
        self.tools_valid_seconds = 0.0  # how long the tool list is valid; 0 if the server does not say
        self.on_tools_changed: Callable[[], None] = lambda: None
        self.on_offers_changed: Callable[[], None] = lambda: None
        self._client_info = {"name": "ostler", "version": version}
        self._capabilities: Mapping[str, Any] = CAPABILITIES if interactive else {}
        self._running_asks: list[Ask] = []
        self._listener: asyncio.Task[None] | None = None
        handler.on_notification = self._handle_notification
        handler.on_request = self._handle_request

    # -- start ---------------------------------------------------------------------------------------------------

    async def start(self, timeout: float, era: Era | None = None) -> ServerDescription:
        """Agree on the protocol version; `era` is what the server used last time.

        Raises `BackendError` if there is no common version, the server does not answer, or it ends.
        """
        try:
            async with asyncio.timeout(timeout):
                self.description = await self._negotiate(timeout, era)
        except TimeoutError:
            raise ServerTimeout(f"it did not answer within {timeout:g} s") from None
        if self.description.era == "modern" and self._announced_changes():
            self._listener = asyncio.create_task(self._listen(), name="MCP notifications")
        return self.description

    def _announced_changes(self) -> dict[str, bool]:
        """Return the notifications about changed lists that the server can send, as a filter for a subscription."""
        kinds: tuple[ListKind, ...] = ("tools", "prompts", "resources")
        return {f"{kind}ListChanged": True for kind in kinds if self.description.announces_changes(kind)}

    async def _negotiate(self, timeout: float, era: Era | None) -> ServerDescription:
        if era == "legacy":
            try:
                return await self._shake_hands(timeout)
            except RpcError:
                pass  # it changed its era; probe it
        return await self._discover(timeout) or await self._shake_hands(timeout)

    async def _discover(self, timeout: float, *, is_retry: bool = False) -> ServerDescription | None:
        """Return the description of a modern server, or None if the server is a legacy one."""
        try:
            result = await self._request(DISCOVER, {}, timeout=min(PROBE_SECONDS, timeout / 2), modern=True)
        except ServerTimeout:
            return None
        except RpcError as error:
            if error.code not in MODERN_ERRORS:
                return None
            versions = supported_versions(error.data.get("supported") if isinstance(error.data, dict) else None)
            if MODERN_VERSION in versions and not is_retry:
                return await self._discover(timeout, is_retry=True)
            _check_versions(versions, error)
            return None
        if not isinstance(result, dict) or not isinstance(result.get("supportedVersions"), list):
            return None
        versions = supported_versions(result["supportedVersions"])
        if MODERN_VERSION in versions:
            return describe_discovery(result)
        _check_versions(versions)
        return None

    async def _shake_hands(self, timeout: float) -> ServerDescription:
        params = {
            "protocolVersion": LEGACY_VERSIONS[0],
            "capabilities": self._capabilities,
            "clientInfo": self._client_info,
        }
        result = await self._request(INITIALIZE, params, timeout=timeout, modern=False)
        if not isinstance(result, dict):
            raise BackendError("the server's answer to initialize is not an object", code="protocol")
        description = describe_handshake(result)
        if description.protocol not in LEGACY_VERSIONS:
            raise BackendError(
                f"the server selected protocol version {description.protocol[:40]!r}, which Ostler does not support",
                code="protocol",
            )
        await self.connection.notify(INITIALIZED, {})
        return description

    # -- requests ------------------------------------------------------------------------------------------------

    async def list_tools(self, timeout: float) -> list[ServerTool]:
        """Return all pages of the tool list. Raises `RpcError` or `BackendError`."""
        found: dict[str, ServerTool] = {}
        self.tools_valid_seconds = 0.0
        for tool in await self._list(LIST_TOOLS, "tools", read_tool, MAX_TOOLS, timeout):
            found.setdefault(tool.name, tool)
        return list(found.values())

    async def list_prompts(self, timeout: float) -> list[ServerPrompt]:
        """Return the server's prompts, up to a limit. Raises `RpcError` or `BackendError`."""
        return await self._list(LIST_PROMPTS, "prompts", read_prompt, MAX_PROMPTS, timeout)

    async def list_resources(self, timeout: float) -> list[ServerResource]:
        """Return the server's resources and templates, up to a limit. Raises `RpcError` or `BackendError`."""
        found = await self._list(LIST_RESOURCES, "resources", read_resource_entry, MAX_RESOURCES, timeout)
        try:
            templates = await self._list(
                LIST_TEMPLATES, "resourceTemplates", read_resource_entry, MAX_RESOURCES, timeout
            )
        except RpcError:  # templates are optional
            templates = []
        return [*found, *templates]

    async def _list(
        self, method: str, key: str, read: Callable[[Any], T | None], limit: int, timeout: float
    ) -> list[T]:
        """Return the entries of all pages, at most `limit`; those that `read` cannot use are left out."""
        entries: list[T] = []
        cursors: set[str] = set()
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            result = await self._request(method, params, timeout=timeout)
            page = result.get(key) if isinstance(result, dict) else None
            if method == LIST_TOOLS:
                self._note_validity(result)
            entries += [entry for value in (page if isinstance(page, list) else ()) if (entry := read(value))]
            cursor = result.get("nextCursor") if isinstance(result, dict) else None
            if not isinstance(cursor, str) or cursor in cursors or len(entries) >= limit:
                break
            cursors.add(cursor)
            params = {"cursor": cursor}
        return entries[:limit]

    def _note_validity(self, page: Any) -> None:
        """Keep the shortest validity of the pages. SDKs send 0 unless their server sets another value."""
        milliseconds = page.get("ttlMs") if isinstance(page, dict) else None
        if isinstance(milliseconds, int) and 0 < milliseconds < MAX_VALID_MS:
            self.tools_valid_seconds = min(self.tools_valid_seconds or MAX_VALID_MS, milliseconds / 1000)

    async def run(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout: float,
        ask: Ask,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Send a request during which the server may ask questions, and return its result.

        Raises `RpcError` or `BackendError`.
        """
        first = params
        self._running_asks.append(limited := _limit_questions(ask))
        try:
            for _ in range(MAX_QUESTIONS):
                try:
                    result = await self._request(method, params, timeout=timeout, on_progress=on_progress)
                except RpcError as error:
                    if error.code != URL_REQUIRED or not await answer_urls(error.data, limited):
                        raise
                    continue
                if not isinstance(result, dict):
                    raise BackendError("the server's result is not an object", code="protocol")
                if result.get("resultType") != "input_required":
                    return result
                params = {**first}
                params["inputResponses"] = await answer_requests(result.get("inputRequests"), limited)
                if isinstance(result.get("requestState"), str):
                    params["requestState"] = result["requestState"]
        finally:
            self._running_asks.remove(limited)
        raise BackendError(f"the server asked for input more than {MAX_QUESTIONS} times", code="protocol")

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout: float | None,
        on_progress: OnProgress | None = None,
        modern: bool | None = None,
    ) -> Any:
        modern = self.description.era == "modern" if modern is None else modern
        if modern:
            params = {**params, META: request_meta(self._client_info, self._capabilities)}
        return await self.connection.request(method, params, timeout=timeout, on_progress=on_progress)

    # -- messages from the server --------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Keep the subscription to changes of the lists open."""
        try:
            await self._request(LISTEN, {"notifications": self._announced_changes()}, timeout=None)
        except (RpcError, BackendError):
            return

    def _handle_notification(self, method: str, params: Mapping[str, Any]) -> None:
        if method == TOOLS_CHANGED:
            self.on_tools_changed()
        elif method in (PROMPTS_CHANGED, RESOURCES_CHANGED):
            self.on_offers_changed()

    async def _handle_request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Answer a request of a legacy server. Its questions belong to the call that started last."""
        if method != ELICIT or not self._capabilities:
            raise RpcError(METHOD_NOT_FOUND, f"{method} is not supported")
        if not self._running_asks:
            return {"action": "decline"}
        return await answer_request(params, self._running_asks[-1])

    async def aclose(self) -> None:
        if self._listener:
            self._listener.cancel()
            await asyncio.wait({self._listener})
        await self.connection.aclose()


def _limit_questions(ask: Ask) -> Ask:
    """Return an `ask` that declines after some questions, so that a server cannot ask forever."""
    count = 0

    async def limited(question: Question) -> QuestionReply:
        nonlocal count
        count += 1
        return await ask(question) if count <= MAX_QUESTIONS else QuestionReply("decline")

    return limited


def _check_versions(versions: Sequence[str], error: RpcError | None = None) -> None:
    """Raise `BackendError` unless a handshake can select one of the versions."""
    if set(versions) & set(LEGACY_VERSIONS):
        return
    if error and error.code != UNSUPPORTED_VERSION:
        raise BackendError(f"the server refused the connection: {error.details}", code="protocol")
    listed = ", ".join(versions)[:200] or "none that it names"
    raise BackendError(
        f"the server supports protocol versions {listed}; Ostler supports {MODERN_VERSION} and "
        f"{LEGACY_VERSIONS[0]} and older",
        code="protocol",
    )


async def answer_requests(requests: Any, ask: Ask) -> dict[str, Any]:
    """Answer the input requests of a result, in order; requests that are not questions are left out."""
    answers: dict[str, Any] = {}
    for key, request in requests.items() if isinstance(requests, dict) else ():
        if isinstance(request, dict) and request.get("method") == ELICIT and isinstance(request.get("params"), dict):
            answers[key] = await answer_request(request["params"], ask)
    return answers


def _limited_form(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of a form with shortened labels; None if it is too large to show."""
    limited: dict[str, Any] = _shorten_labels(schema, 0)
    return limited if len(msgspec.json.encode(limited)) <= MAX_FORM_BYTES else None


def _shorten_labels(value: Any, depth: int) -> Any:
    if isinstance(value, list) and depth < MAX_DEPTH:
        return [_shorten_labels(inner, depth + 1) for inner in value]
    if not isinstance(value, dict) or depth >= MAX_DEPTH:
        return value
    return {
        key: inner[:MAX_LABEL] if key in _LABELS and isinstance(inner, str) else _shorten_labels(inner, depth + 1)
        for key, inner in value.items()
    }


async def answer_urls(data: Any, ask: Ask) -> bool:
    """Ask the user to open the URLs in the data of an error. Return whether all were accepted."""
    requests = data.get("elicitations") if isinstance(data, dict) else None
    requests = requests if isinstance(requests, list) else []
    urls = [request for request in requests if isinstance(request, dict) and isinstance(request.get("url"), str)]
    for request in urls[:MAX_QUESTIONS]:
        if (await answer_request(request, ask))["action"] != "accept":
            return False
    return bool(urls)


async def answer_request(params: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
    """Ask the user a server's question and return the answer in the protocol's form."""
    message, schema, url = params.get("message"), params.get("requestedSchema"), params.get("url")
    question = Question(
        "",
        sanitise(message)[:MAX_TEXT] if isinstance(message, str) else "",
        _limited_form(schema) if isinstance(schema, dict) and not isinstance(url, str) else None,
        url if isinstance(url, str) and url.startswith(("https://", "http://")) else "",
    )
    if question.schema is None and not question.url:
        return {"action": "decline"}
    reply = await ask(question)
    if reply.action != "accept" or question.url:
        return {"action": reply.action}
    return {"action": "accept", "content": reply.content or {}}
