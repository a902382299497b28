"""The HTTP routes for sessions, and what describes the server."""

import asyncio
import logging
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ostler.core.errors import OstlerError
from ostler.core.sessions import SessionQuery, SessionSummary
from ostler.frontends.server.host_record import HostRecord
from ostler.frontends.server.http_errors import HttpError, read_json
from ostler.frontends.server.hub import SessionHub
from ostler.frontends.server.hubs import SessionHubs
from ostler.frontends.server.turn_metadata import snapshot
from ostler.wire.frames_shared import FEATURES, PROTOCOL_VERSION, Frame, HostInfo, ServerLimits

MAX_BODY = 64 * 1024
MAX_TITLE = 500
READY_SECONDS = 2.0
log = logging.getLogger("ostler.server")


class NewSession(Frame, frozen=True):
    """The body of `POST /api/agent/sessions`."""

    workspace_root: str = ""
    title: str = ""
    model: str = ""
    client_version: str = ""


class SessionPatch(Frame, frozen=True):
    """The body of `PATCH /api/agent/sessions/{id}`."""

    title: str | None = None
    model: str | None = None


class ForkBody(Frame, frozen=True):
    """The body of `POST /api/agent/sessions/{id}/fork`; without `seq` everything is copied."""

    seq: Annotated[int, msgspec.Meta(ge=0)] = 0


class ListedSession(msgspec.Struct, frozen=True, rename="camel"):
    """A session in the list. `activity` is empty unless it is open in this process: working, waiting or idle."""

    session_id: str
    title: str
    workspace_root: str
    created_at: str
    updated_at: str
    turns: int
    activity: str = ""


class SessionDescription(ListedSession, frozen=True, rename="camel"):
    """A session in an answer, with what runs now."""

    model: str = ""
    epoch: str = ""
    seq: int = 0
    turn_id: str = ""
    host: HostInfo = HostInfo()
    host_connected: bool = False
    tools: tuple[str, ...] = ()


class CapabilitiesAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The features of a server; `protocol` has the versions that it speaks."""

    server_version: str
    protocol: tuple[int, ...]
    features: tuple[str, ...]
    limits: ServerLimits
    models: tuple[str, ...]
    transports: tuple[str, ...]
    session_tools: tuple[str, ...]


class RestRoutes:
    """Answers requests about the sessions of a user."""

    def __init__(self, hubs: SessionHubs) -> None:
        self._hubs = hubs

    async def create(self, request: Request) -> Response:
        body = await read_json(request, NewSession, MAX_BODY)
        self._check_accepting()
        record = HostRecord.new(body.workspace_root)
        hub = await self._hubs.create(request.state.user, record, body.title[:MAX_TITLE], body.model[:200])
        return _json(await self._describe(hub), 201)

    async def list(self, request: Request) -> Response:
        limit = request.query_params.get("limit", "50")
        if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:6]) <= 1000:
            raise HttpError(400, "bad_message", "limit must be a number from 1 to 1000")
        query = SessionQuery(text=request.query_params.get("search", "")[:500], limit=int(limit))
        found = await self._hubs.list(request.state.user, query)
        return _json({"sessions": [self._listed(summary) for summary in found]})

    def _listed(self, summary: SessionSummary) -> ListedSession:
        return ListedSession(
            summary.id,
            summary.title,
            summary.cwd,
            summary.started,
            summary.changed,
            summary.turns,
            self._hubs.activity(summary.id),
        )

    async def get(self, request: Request) -> Response:
        return _json(await self._describe(await self._hub(request)))

    async def patch(self, request: Request) -> Response:
        body = await read_json(request, SessionPatch, MAX_BODY)
        hub = await self._hub(request)
        title = None if body.title is None else body.title[:MAX_TITLE]
        await self._hubs.change(hub, title, body.model)
        return _json(await self._describe(hub))

    async def delete(self, request: Request) -> Response:
        await self._hubs.delete(await self._hub(request))
        return Response(status_code=204)

    async def fork(self, request: Request) -> Response:
        body = await read_json(request, ForkBody, MAX_BODY)
        self._check_accepting()
        return _json(await self._describe(await self._hubs.fork(await self._hub(request), body.seq)), 201)

    async def messages(self, request: Request) -> Response:
        hub = await self._hub(request)
        session = await hub.open_session()
        body: dict[str, Any] = msgspec.to_builtins(snapshot(session))
        return _json({**body, "epoch": hub.epoch, "seq": session.last_seq})

    async def capabilities(self, request: Request) -> Response:
        own_tools = self._hubs.parts.session_tools()
        return _json(
            CapabilitiesAnswer(
                self._hubs.parts.version,
                (PROTOCOL_VERSION,),
                tuple(FEATURES),
                self._hubs.parts.config.limits(),
                self._hubs.parts.models,
                ("websocket", "sse"),
                tuple(spec.name for spec in own_tools.specs()) if own_tools else (),
            )
        )

    async def health(self, request: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        status = "draining" if self._hubs.draining else await self._check_storage(request.state.user)
        return _json({"status": status}, 200 if status == "ok" else 503)

    async def _check_storage(self, user: str) -> str:
        """Return whether the database answers in time."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._hubs.list(user, SessionQuery(limit=1))
        except (OstlerError, TimeoutError) as error:
            log.warning("the database does not answer: %s", error)
            return "no database"
        return "ok"

    def _check_accepting(self) -> None:
        if self._hubs.draining:
            raise HttpError(503, "draining", "the server is shutting down")

    async def _hub(self, request: Request) -> SessionHub:
        return await self._hubs.get(request.state.user, request.path_params["id"])

    async def _describe(self, hub: SessionHub) -> SessionDescription:
        listed = msgspec.structs.asdict(self._listed(await self._hubs.summary(hub)))
        session = hub.session
        turn = session.turn if session else None
        listed["title"] = (session.state.title if session else "") or listed["title"]
        listed["workspace_root"] = hub.record.root  # the summary has the root of the log, which may not be written yet
        return SessionDescription(
            **listed,
            model=session.info.option("model") if session else hub.record.options.get("model", ""),
            epoch=hub.epoch,
            seq=hub.last_seq,
            turn_id=turn.id if turn else "",
            host=hub.link.info,
            host_connected=hub.host_connection is not None,
            tools=tuple(hub.link.tools),
        )


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
