"""A server with the connector of Agent Zero, on the same Socket.IO library as the real one.

It does what the plugin of the real server does: the log counts updates, the stream is polled, the end of a turn is
reported apart from the stream, and operations go to the client that the server selects.
"""

import asyncio
import contextlib
import json
import socket

import socketio
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from ostler.http.server_closing import stop_accepting

NAMESPACE = "/ws"
HANDLER = "plugins/_a0_connector/ws_connector"
PAGE = 50
FEATURES = (
    *("chat_create", "chats_list", "chat_get", "chat_reset", "chat_delete", "pause", "nudge", "message_send"),
    *("log_tail", "projects", "text_editor_remote", "code_execution_remote", "remote_file_tree", "token_status"),
    *("launcher_gateway", "agent_profile_set", "agents_list", "model_presets", "model_switcher", "compact_chat"),
)
EXEC_CONFIG = {
    "version": 1,
    "code_exec_timeouts": {
        "first_output_timeout": 5,
        "between_output_timeout": 5,
        "max_exec_timeout": 20,
        "dialog_timeout": 5,
    },
    "output_timeouts": {},
    "prompt_patterns": [],
    "dialog_patterns": [],
}


class ConnectorDouble:
    """Plays one coroutine per message, which gets this server and may return the answer.

    `is_old`: a server whose stream does not report the end of a turn. `poll` is how often the stream is polled.
    `loses_acks`: the connection is cut after a message has arrived, before it is acknowledged.
    """

    def __init__(self, *turns, user="", password="", protocol="a0-connector.v1", version="0.1.0", **options):
        self.turns, self.user, self.password = list(turns), user, password
        self.protocol, self.version = protocol, version
        self.is_old, self.poll = options.pop("is_old", False), options.pop("poll", 0.01)
        self.features = options.pop("features", FEATURES)
        self.gateways, self.remote_tools = options.pop("gateways", ()), options.pop("remote_tools", {})
        self.loses_acks = options.pop("loses_acks", 0)
        assert not options
        self.log, self.updates = [], []
        self.messages, self.posts, self.subscriptions, self.trees, self.hellos = [], [], [], [], []
        self.results, self.context_id, self.logins, self.refused_results = {}, "ctx-1", 0, []
        self.running = 0
        self._pending, self._sids, self._meta, self._subscribed = {}, [], {}, {}
        self._result_added = asyncio.Condition()
        self._tasks = set()

    async def __aenter__(self):
        self.sio = socketio.AsyncServer(async_mode="asgi", namespaces=[NAMESPACE], cors_allowed_origins="*")
        for name, handler in {
            "connect": self._connect,
            "disconnect": self._disconnect,
            "connector_hello": self._hello,
            "connector_subscribe_context": self._subscribe,
            "connector_unsubscribe_context": self._unsubscribe,
            "connector_send_message": self._message,
            "connector_remote_tree_update": self._tree,
            **{f"connector_{kind}_op_result": self._result for kind in ("file", "exec", "computer_use", "browser")},
        }.items():
            self.sio.on(name, handler, namespace=NAMESPACE)
        routes = [
            Route("/login", self._login, methods=["POST"]),
            Route("/api/plugins/_a0_connector/v1/{route}", self._post, methods=["POST"]),
        ]
        app = socketio.ASGIApp(self.sio, Starlette(routes=routes))
        listener = self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="websockets-sansio")
        config.timeout_graceful_shutdown = 1
        self._server = uvicorn.Server(config)
        self._server.capture_signals = contextlib.nullcontext
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._server.servers:
            await stop_accepting(server.sockets)
        self._server.should_exit = True
        self._server.force_exit = True
        await asyncio.wait({self._serving}, timeout=3)
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._listener.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    # -- what a turn does ------------------------------------------------------------------------------------------

    async def event(self, kind, text="", heading="", meta=None, seq=None):
        """Add an item to the log, or change the item `seq`; the stream sends it when it is polled."""
        number = len(self.log) if seq is None else seq
        data = {"text": text, "heading": heading, "meta": meta or {}}
        data = {name: value for name, value in data.items() if value}
        event = {"context_id": self.context_id, "sequence": number + 1, "event": kind, "timestamp": "", "data": data}
        self.log[number : number + 1] = [event]
        self.updates.append(number)
        await asyncio.sleep(2 * self.poll)

    async def emit(self, name, data, sid=None):
        for target in [sid] if sid else self._sids:
            await self.sio.emit(name, {"handlerId": HANDLER, "data": data}, to=target, namespace=NAMESPACE)

    async def operation(self, name, op_id, *, wait=True, **members):
        """Send an operation to the client that the real server would select, and return its result."""
        kind = "remote_exec" if name == "connector_exec_op" else "remote_files"
        candidates = [*sorted(self._subscribed.get(self.context_id, ())), *sorted(self._sids)]
        offered = [sid for sid in candidates if self._meta.get(sid, {}).get(kind, {}).get("enabled")]
        sid = (offered or candidates)[0]
        self._pending[op_id] = sid
        self.results.pop(op_id, None)
        await self.emit(name, {"op_id": op_id, "context_id": self.context_id, **members}, sid)
        if not wait:
            return None
        async with self._result_added:
            await self._result_added.wait_for(lambda: op_id in self.results)
        return self.results[op_id]

    async def drop(self):
        """Cut the connections without a word."""
        sids, self._sids = self._sids, []
        for sid in sids:
            engine = self.sio.manager.eio_sid_from_sid(sid, NAMESPACE)
            if engine:
                await self.sio.eio.disconnect(engine)

    # -- handlers --------------------------------------------------------------------------------------------------

    async def _connect(self, sid, environ, auth):
        if HANDLER not in (auth or {}).get("handlers", ()):
            raise socketio.exceptions.ConnectionRefusedError("no handlers")
        if self.user and "session=good" not in environ.get("HTTP_COOKIE", ""):
            raise socketio.exceptions.ConnectionRefusedError("AUTH_REQUIRED")
        self._sids = [*self._sids, sid]

    async def _disconnect(self, sid, reason=None):
        self._sids = [known for known in self._sids if known != sid]
        self._meta.pop(sid, None)
        for sids in self._subscribed.values():
            sids.discard(sid)
        self._pending = {op_id: owner for op_id, owner in self._pending.items() if owner != sid}

    async def _hello(self, sid, data):
        self.hellos.append(data)
        self._meta[sid] = data
        files, commands = data.get("remote_files") or {}, data.get("remote_exec") or {}
        tools = {
            "remote_files": bool(files.get("enabled")),
            "remote_file_writes": bool(files.get("write_enabled")),
            "remote_exec": bool(commands.get("enabled")),
        }
        reply = {"protocol": self.protocol, "features": ["code_execution_remote"], "exec_config": EXEC_CONFIG}
        more = {"agent_zero_version": "v1.9", "remote_tools": tools | self.remote_tools}
        return _ok(reply if self.is_old else reply | more)

    async def _subscribe(self, sid, data):
        self.subscriptions.append(data)
        if data["context_id"] != self.context_id:
            return _error("CONTEXT_NOT_FOUND", f"Context '{data['context_id']}' not found")
        self._subscribed.setdefault(self.context_id, set()).add(sid)
        cursor = max(len(self.updates) - 100, 0) if data.get("history") == "tail" else int(data.get("from", 0) or 0)
        limit = None if self.is_old or data.get("history") == "tail" else PAGE
        cursor = await self._snapshot(sid, cursor, limit)
        self._spawn(self._stream(sid, cursor))
        return _ok({"context_id": self.context_id, "subscribed": True, "last_sequence": cursor})

    async def _snapshot(self, sid, cursor, limit):
        end = len(self.updates) if limit is None else min(cursor + limit, len(self.updates))
        snapshot = {"context_id": self.context_id, "events": self._events(cursor, end), "last_sequence": end}
        await self.emit("connector_context_snapshot", snapshot, sid)
        return end

    def _events(self, start, end):
        return [self.log[number] for number in dict.fromkeys(self.updates[start:end]) if number < len(self.log)]

    async def _stream(self, sid, cursor):
        """Send the rest of the past as snapshots, then poll the log for events."""
        while not self.is_old and cursor < len(self.updates) and sid in self._sids:
            cursor = await self._snapshot(sid, cursor, PAGE)
        was_running = self.running
        while sid in self._subscribed.get(self.context_id, ()):
            end = len(self.updates)
            for event in self._events(cursor, end):
                await self.emit("connector_context_event", event, sid)
            cursor = end
            if was_running and not self.running and not self.is_old:
                await self.emit(
                    "connector_context_complete", {"context_id": self.context_id, "status": "completed"}, sid
                )
            was_running = self.running
            await asyncio.sleep(self.poll)

    async def _unsubscribe(self, sid, data):
        self._subscribed.get(data["context_id"], set()).discard(sid)
        return _ok({})

    async def _message(self, sid, data):
        if any(isinstance(item, dict) and item.get("base64") for item in data.get("attachments", ())):
            return _error("INVALID_ATTACHMENTS", "WebSocket attachments must be file paths or URLs")
        self._log_message(data)
        if not self.running:  # else the running agent takes the message
            self._spawn(self._run_message(data))
        if self.loses_acks:
            self.loses_acks -= 1
            await self.drop()
        return _ok({"context_id": self.context_id, "status": "accepted"})

    def _log_message(self, data):
        self.messages.append(data)
        number = len(self.log)
        event = {"context_id": self.context_id, "sequence": number + 1, "event": "user_message", "timestamp": ""}
        self.log.append({**event, "data": {"text": data["message"].strip()}})
        self.updates.append(number)

    async def _run_message(self, data):
        try:
            response = await self._play()
        except RuntimeError as error:
            text = str(error)
            await self._emit_to_subscribers("connector_error", {"code": "AGENT_ERROR", "message": text})
            await self._emit_to_subscribers("connector_context_complete", {"status": "error", "error": text})
            return
        complete = {"status": "completed", "response": response}
        await self._emit_to_subscribers("connector_context_complete", complete)

    async def _emit_to_subscribers(self, name, members):
        for sid in sorted(self._subscribed.get(self.context_id, ())):
            await self.emit(name, {"context_id": self.context_id, **members}, sid)

    async def _play(self):
        """Play the next turn and return its answer."""
        self.running += 1
        first = len(self.log)
        try:
            answer = await self.turns.pop(0)(self) if self.turns else ""
        finally:
            self.running -= 1
        texts = [event["data"].get("text", "") for event in self.log[first:] if event["event"] == "assistant_message"]
        return answer or (texts[-1] if texts else "")

    async def _tree(self, sid, data):
        if not all(
            isinstance(data.get(name), str) and data[name].strip() for name in ("tree", "root_path", "tree_hash")
        ):
            return _error("INVALID_TREE_PAYLOAD", "tree, root_path and tree_hash are required")
        self.trees.append(data)
        return _ok({"accepted": True})

    async def _result(self, sid, data):
        if self._pending.get(data["op_id"]) != sid:
            self.refused_results.append(data)
            return _error("UNKNOWN_OP_ID", f"No pending operation for op_id '{data['op_id']}'")
        async with self._result_added:
            self.results[data["op_id"]] = data
            self._result_added.notify_all()
        return _ok({"op_id": data["op_id"], "accepted": True})

    async def _login(self, request):
        self.logins += 1
        form = (await request.body()).decode()
        response = RedirectResponse("/", 302)
        if form == f"username={self.user}&password={self.password}":
            response.set_cookie("session", "good")
        return response

    async def _post(self, request):
        route, body = request.path_params["route"], json.loads(await request.body() or b"{}")
        if route == "capabilities":
            return JSONResponse(self._capabilities())
        if self.user and request.cookies.get("session") != "good":
            return RedirectResponse("/login", 302)
        self.posts.append((route, body))
        if route == "message_send":
            self._log_message(body)
            self.posts[-1] = (route, {**body, "done": True})
            return JSONResponse({"context_id": self.context_id, "status": "completed", "response": await self._play()})
        if route == "agent_profile_set" and not body.get("agent_profile"):
            return Response("Missing agent_profile", status_code=400)
        if route == "nudge":
            self._spawn(self._play())
        answer = self._answers(body).get(route, {"ok": True})
        return JSONResponse(answer) if answer else Response(status_code=404)

    def _capabilities(self):
        return {
            "protocol": self.protocol,
            "version": self.version,
            "agent_zero_version": "v1.9",
            "auth": ["session"],
            "auth_required": bool(self.user),
            "websocket_namespace": NAMESPACE,
            "websocket_handlers": [HANDLER],
            "features": list(self.features),
        }

    def _answers(self, body):
        chat = {"id": self.context_id, "name": "chat", "running": bool(self.running), "last_message": None}
        projects = [{"name": "demo", "title": "Demo", "description": "", "color": ""}]
        return {
            "unknown": None,
            "chat_create": {"context_id": self.context_id, "ctxid": self.context_id},
            "chats_list": {"contexts": [chat], "chats": [chat]},
            "projects": {"ok": True, "projects": projects, "current_project": None},
            "agents_list": {
                "ok": True,
                "data": [{"key": "agent0", "label": "Agent 0"}, {"key": "coder", "label": "C"}],
            },
            "model_presets": {"ok": True, "presets": [{"name": "fast"}, {"name": "deep"}]},
            "launcher_gateway_status": {"connected": bool(self.gateways), "gateways": list(self.gateways)},
            "token_status": {"ok": True, "token_count": 1234, "context_window": 100_000},
        }

    def _spawn(self, coroutine):
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)


def _ok(data):
    return {"correlationId": "r", "results": [{"handlerId": HANDLER, "ok": True, "data": data}]}


def _error(code, text):
    return {
        "correlationId": "r",
        "results": [{"handlerId": HANDLER, "ok": False, "error": {"code": code, "error": text}}],
    }
