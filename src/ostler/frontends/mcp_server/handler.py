"""Answers the requests of an MCP client, in both eras of the protocol, with the tools of a session."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from ostler.core.errors import OstlerError
from ostler.core.events import Event, PermissionAsked, QuestionAsked, ToolProgress
from ostler.core.protocols import Session
from ostler.core.tools import ToolCall, ToolResult, ToolSpec
from ostler.frontends.mcp_server.client_requests import can_show
from ostler.frontends.mcp_server.served_call import (
    ANSWER_SECONDS,
    RUN_SPEC,
    RUN_TOOL,
    OpenRun,
    Report,
    ServedCall,
    SuspendedCalls,
    run_prompt,
)
from ostler.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, JsonRpcPeer, Params, RpcError
from ostler.wire.mcp import (
    CAPABILITIES_META,
    DISCOVER,
    ELICIT,
    LEGACY_VERSIONS,
    LIST_TOOLS,
    META,
    MODERN_VERSION,
    PROGRESS,
    SERVER_META,
    UNSUPPORTED_VERSION,
    VERSION_META,
)

INSTRUCTIONS = (
    "The tools of Ostler, a coding agent, for one folder. What needs approval is asked in this client if it supports "
    "elicitation, and denied otherwise, with the reason: the user allows it with flags of `ostler mcp serve` or with "
    "permission rules."
)

# Returns the session for calls, which is opened at the first use; with `True`, the client's user can be asked.
OpenSession = Callable[[bool], Awaitable[Session]]


class McpServerHandler:
    """Handles one client's requests."""

    def __init__(
        self, open_session: OpenSession, open_run: OpenRun, version: str, tools: Sequence[str] = ("*",)
    ) -> None:
        self.peer: JsonRpcPeer
        self._open_session = open_session
        self._open_run = open_run
        self._info = {"name": "ostler", "version": version}
        self._patterns = tools
        self._capabilities: Any = {}  # of a legacy client
        self._running: list[str] = []
        self._suspended = SuspendedCalls()

    def handle_notification(self, method: str, params: Params) -> None:
        """Ignore notifications; the peer handles cancellation."""

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        meta = params.get(META)
        meta = meta if isinstance(meta, dict) else {}
        version = meta.get(VERSION_META)
        if version is not None and version != MODERN_VERSION:
            data = {"supported": [MODERN_VERSION, *LEGACY_VERSIONS], "requested": str(version)[:40]}
            raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        if version is not None and not isinstance(meta.get(CAPABILITIES_META), dict):
            raise RpcError(INVALID_PARAMS, f"{META} lacks {CAPABILITIES_META}")
        return self._respond(method, params, meta, is_modern=version is not None)

    async def aclose(self) -> None:
        """Cancel the calls that wait for the client's next round."""
        await self._suspended.aclose()

    async def _respond(self, method: str, params: Params, meta: Mapping[str, Any], *, is_modern: bool) -> Any:
        result = await self._result(method, params, meta, is_modern=is_modern)
        if not is_modern:
            return result
        caching = {"ttlMs": 0, "cacheScope": "private"} if method in (DISCOVER, LIST_TOOLS) else {}
        return {"resultType": "complete", **result, **caching, META: {SERVER_META: self._info}}

    async def _result(self, method: str, params: Params, meta: Mapping[str, Any], *, is_modern: bool) -> dict[str, Any]:
        match method:
            case "server/discover":
                versions = [MODERN_VERSION, *LEGACY_VERSIONS]
                return {"supportedVersions": versions, "capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
            case "initialize" if not is_modern:
                return self._initialize(params)
            case "ping" if not is_modern:
                return {}
            case "tools/list":
                specs = await self._specs(self._client_capabilities(meta, is_modern))
                return {"tools": [_declare(spec) for spec in specs]}
            case "tools/call":
                return await self._call(params, meta, is_modern=is_modern)
        raise RpcError(METHOD_NOT_FOUND, f"{method[:80]} is not supported")

    def _initialize(self, params: Params) -> dict[str, Any]:
        requested = params.get("protocolVersion")
        self._capabilities = params.get("capabilities")
        return {
            "protocolVersion": requested if requested in LEGACY_VERSIONS else LEGACY_VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": self._info,
            "instructions": INSTRUCTIONS,
        }

    def _client_capabilities(self, meta: Mapping[str, Any], is_modern: bool) -> Any:
        return meta.get(CAPABILITIES_META) if is_modern else self._capabilities

    async def _specs(self, capabilities: Any) -> list[ToolSpec]:
        session = await self._open_session(can_show(capabilities))
        specs = [*session.tools(), RUN_SPEC]
        return [spec for spec in specs if any(fnmatchcase(spec.name, pattern) for pattern in self._patterns)]

    # -- calls ---------------------------------------------------------------------------------------------------

    async def _call(self, params: Params, meta: Mapping[str, Any], *, is_modern: bool) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments", {})
        capabilities = self._client_capabilities(meta, is_modern)
        if not isinstance(name, str) or name not in {spec.name for spec in await self._specs(capabilities)}:
            raise RpcError(INVALID_PARAMS, f"unknown tool {str(name)[:80]!r}")
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        call = self._continued_call(params, name, arguments) if is_modern else None
        if call is None:
            call = ServedCall(name, arguments, capabilities, None if is_modern else self._ask_legacy_client)
            call.start(self._run_prompt(call) if name == RUN_TOOL else await self._start_tool(call))
        call.report = self._reporter(meta.get("progressToken"))
        result = await call.next_result()
        if result.get("resultType") == "input_required":
            self._suspended.add(result["requestState"], call)
        return result

    def _continued_call(self, params: Params, name: str, arguments: dict[str, Any]) -> ServedCall | None:
        """Return the call that a round of a modern client continues, with its replies; None for a new call.

        Replies without the state of a question that was asked here are not used.
        """
        if "requestState" not in params:
            return None
        responses = params.get("inputResponses", {})
        if not isinstance(responses, dict):
            raise RpcError(INVALID_PARAMS, "inputResponses must be an object")
        call = self._suspended.take(params["requestState"], name, arguments)
        if call is None:
            raise RpcError(INVALID_PARAMS, "the request state is not valid for this call, or has expired")
        call.take_responses(responses)
        return call

    async def _ask_legacy_client(self, params: Mapping[str, Any]) -> Any:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await self.peer.request(ELICIT, params)

    def _reporter(self, token: Any) -> Report | None:
        """Return a function that sends progress notifications, if the client asked for them."""
        if not isinstance(token, int | str):
            return None

        def report(step: int, message: str) -> None:
            text = {"message": message} if message else {}
            self.peer.notify(PROGRESS, {"progressToken": token, "progress": step, **text})

        return report

    async def _start_tool(self, call: ServedCall) -> Awaitable[dict[str, Any]]:
        call_id = f"mcp-{secrets.token_hex(8)}"  # a session runs each id once
        session = await self._open_session(can_show(call.capabilities))
        call.follow(session, partial(self._is_about, call_id))
        return self._run_tool(session, ToolCall(call_id, call.name, dict(call.arguments), origin="protocol"))

    async def _run_tool(self, session: Session, call: ToolCall) -> dict[str, Any]:
        self._running.append(call.id)
        try:
            return _convert(await session.call(call))
        finally:
            self._running.remove(call.id)

    def _is_about(self, call_id: str, event: Event) -> bool:
        """Return whether an event is about a call. A question belongs to the call that started last."""
        match event:
            case PermissionAsked(_, permission):
                return permission.call_id == call_id
            case QuestionAsked():
                return self._running[-1:] == [call_id]
            case ToolProgress(about):
                return about == call_id
        return False

    async def _run_prompt(self, call: ServedCall) -> dict[str, Any]:
        prompt, session_id = call.arguments.get("prompt"), call.arguments.get("session", "")
        if not isinstance(prompt, str) or not prompt.strip() or not isinstance(session_id, str):
            raise RpcError(INVALID_PARAMS, "run needs a prompt, and takes a session id")
        try:
            async with self._open_run(session_id, can_show(call.capabilities)) as session:
                return await run_prompt(session, prompt, call)
        except OstlerError as error:
            return {"content": [_text(f"Error: {error}")], "isError": True}


def _declare(spec: ToolSpec) -> dict[str, Any]:
    hints = {"readOnlyHint": not spec.effects, "destructiveHint": spec.effects}
    return {"name": spec.name, "description": spec.description, "inputSchema": spec.schema, "annotations": hints}


def _convert(result: ToolResult) -> dict[str, Any]:
    """Return the result for a client; without structured content, which some clients would show a second time."""
    images = [{"type": "image", "mimeType": image.mime, "data": image.data} for image in result.images]
    return {"content": [_text(result.for_model), *images], "isError": result.status != "ok"}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
