"""Answers the requests of an MCP client, in both eras of the protocol, with the tools of a session."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from ostler.core.display import Display
from ostler.core.errors import OstlerError
from ostler.core.events import ToolProgress
from ostler.core.protocols import Session
from ostler.core.tools import ToolCall, ToolResult, ToolSpec
from ostler.text.sanitise import sanitise
from ostler.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, JsonRpcPeer, Params, RpcError
from ostler.wire.mcp import (
    DISCOVER,
    LEGACY_VERSIONS,
    LIST_TOOLS,
    META,
    MODERN_VERSION,
    PROGRESS,
    SERVER_META,
    UNSUPPORTED_VERSION,
    VERSION_META,
)

PROGRESS_SECONDS = 5.0
RUN_TOOL = "run"
INSTRUCTIONS = (
    "The tools of Ostler, a coding agent, for one folder. Calls that need the user's approval are denied, with the "
    "reason: the user allows them with flags of `ostler mcp serve` or with permission rules."
)
RUN_SPEC = ToolSpec(
    RUN_TOOL,
    "other",
    "Give a task to Ostler's own agent and return its answer. The answer contains a session id; a later call with this "
    "id continues the conversation.",
    {
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "the task"},
            "session": {"type": "string", "description": "id of an earlier session to continue"},
        },
        "required": ["prompt"],
    },
)

RunPrompt = Callable[[str, str], Awaitable[tuple[str, str, bool]]]


class McpServerHandler:
    """Handles one client's requests. `run_prompt` returns the answer, the session id and whether it is complete."""

    def __init__(self, session: Session, run_prompt: RunPrompt, version: str, tools: Sequence[str] = ("*",)) -> None:
        self.peer: JsonRpcPeer
        self._session = session
        self._run_prompt = run_prompt
        self._info = {"name": "ostler", "version": version}
        self._patterns = tools
        self._count = 0

    def handle_notification(self, method: str, params: Params) -> None:
        """Ignore notifications; the peer handles cancellation."""

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        meta = params.get(META)
        meta = meta if isinstance(meta, dict) else {}
        version = meta.get(VERSION_META)
        if version is not None and version != MODERN_VERSION:
            data = {"supported": [MODERN_VERSION, *LEGACY_VERSIONS], "requested": str(version)[:40]}
            raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        return self._respond(method, params, meta, is_modern=version is not None)

    async def _respond(self, method: str, params: Params, meta: Mapping[str, Any], *, is_modern: bool) -> Any:
        result = await self._result(method, params, meta)
        if not is_modern:
            return result
        caching = {"ttlMs": 0, "cacheScope": "private"} if method in (DISCOVER, LIST_TOOLS) else {}
        return {"resultType": "complete", **result, **caching, META: {SERVER_META: self._info}}

    async def _result(self, method: str, params: Params, meta: Mapping[str, Any]) -> dict[str, Any]:
        match method:
            case "server/discover":
                versions = [MODERN_VERSION, *LEGACY_VERSIONS]
                return {"supportedVersions": versions, "capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
            case "initialize":
                return self._initialize(params)
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [_declare(spec) for spec in self._specs()]}
            case "tools/call":
                return await self._call(params, meta.get("progressToken"))
        raise RpcError(METHOD_NOT_FOUND, f"{method[:80]} is not supported")

    def _initialize(self, params: Params) -> dict[str, Any]:
        requested = params.get("protocolVersion")
        return {
            "protocolVersion": requested if requested in LEGACY_VERSIONS else LEGACY_VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": self._info,
            "instructions": INSTRUCTIONS,
        }

    def _specs(self) -> list[ToolSpec]:
        specs = [*self._session.tools(), RUN_SPEC]
        return [spec for spec in specs if any(fnmatchcase(spec.name, pattern) for pattern in self._patterns)]

    async def _call(self, params: Params, token: Any) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or name not in {spec.name for spec in self._specs()}:
            raise RpcError(INVALID_PARAMS, f"unknown tool {str(name)[:80]!r}")
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        self._count += 1
        call_id = f"mcp-{self._count}"
        with self._reporting(call_id, token):
            if name == RUN_TOOL:
                return await self._run(arguments)
            return _convert(await self._session.call(ToolCall(call_id, name, arguments, origin="protocol")))

    async def _run(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        prompt, session = arguments.get("prompt"), arguments.get("session", "")
        if not isinstance(prompt, str) or not prompt.strip() or not isinstance(session, str):
            raise RpcError(INVALID_PARAMS, "run needs a prompt, and takes a session id")
        try:
            answer, session_id, is_complete = await self._run_prompt(prompt, session)
        except OstlerError as error:
            return {"content": [_text(f"Error: {error}")], "isError": True}
        text = f"{answer}\n\n[session: {session_id}]"
        structured = {"answer": answer, "session": session_id}
        return {"content": [_text(text)], "structuredContent": structured, "isError": not is_complete}

    @contextmanager
    def _reporting(self, call_id: str, token: Any) -> Iterator[None]:
        """Send progress notifications during a call, if the client asked for them."""
        if not isinstance(token, int | str):
            yield
            return
        task = asyncio.create_task(self._report(call_id, token), name="MCP progress")
        try:
            yield
        finally:
            task.cancel()

    async def _report(self, call_id: str, token: int | str) -> None:
        """Send each progress of the call, and one notification every few seconds otherwise."""
        subscription = self._session.subscribe(since=2**62)
        step = 0
        try:
            while True:
                display = await _next_progress(subscription, call_id)
                step += 1
                params: dict[str, Any] = {"progressToken": token, "progress": step}
                if display.summary:
                    params["message"] = sanitise(display.summary)[:500]
                self.peer.notify(PROGRESS, params)
        finally:
            subscription.close()


async def _next_progress(subscription: Any, call_id: str) -> Display:
    """Return the next progress of a call, or an empty display if there is none for some seconds."""
    try:
        async with asyncio.timeout(PROGRESS_SECONDS):
            async for envelope in subscription:
                if isinstance(envelope.event, ToolProgress) and envelope.event.call_id == call_id:
                    display: Display = envelope.event.display
                    return display
            await asyncio.Event().wait()  # the session is closed
    except TimeoutError:
        pass
    return Display()


def _declare(spec: ToolSpec) -> dict[str, Any]:
    hints = {"readOnlyHint": not spec.effects, "destructiveHint": spec.effects}
    return {"name": spec.name, "description": spec.description, "inputSchema": spec.schema, "annotations": hints}


def _convert(result: ToolResult) -> dict[str, Any]:
    """Return the result for a client; without structured content, which some clients would show a second time."""
    images = [{"type": "image", "mimeType": image.mime, "data": image.data} for image in result.images]
    return {"content": [_text(result.for_model), *images], "isError": result.status != "ok"}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
