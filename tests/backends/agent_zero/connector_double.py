"""A server with the connector of Agent Zero, on the same Socket.IO library as the real one."""

import asyncio
import contextlib
import json
import socket

import socketio
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

NAMESPACE = "/ws"
HANDLER = "plugins/_a0_connector/ws_connector"


class ConnectorDouble:
    """Plays one coroutine per message, which gets this server. `log` has all events of the conversation."""

    def __init__(self, *turns, user="", password="", protocol="a0-connector.v1"):
        self.turns, self.user, self.password, self.protocol = list(turns), user, password, protocol
        self.log, self.messages, self.posts, self.subscriptions, self.trees, self.hellos = [], [], [], [], [], []
        self.results, self.context_id, self.logins, self.cookies = {}, "ctx-1", 0, []
        self._result_added = asyncio.Condition()
        self._tasks, self._sids = set(), []

    async def __aenter__(self):
        self.sio = socketio.AsyncServer(async_mode="asgi", namespaces=[NAMESPACE], cors_allowed_origins="*")
        on = self.sio.on
        on("connect", self._connect, namespace=NAMESPACE)
        on("connector_hello", self._hello, namespace=NAMESPACE)
        on("connector_subscribe_context", self._subscribe, namespace=NAMESPACE)
        on("connector_send_message", self._message, namespace=NAMESPACE)
        on("connector_remote_tree_update", self._tree, namespace=NAMESPACE)
        for name in ("file", "exec", "computer_use"):
            on(f"connector_{name}_op_result", self._result, namespace=NAMESPACE)
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
        self._server.should_exit = True
        self._server.force_exit = True
        await asyncio.wait({self._serving}, timeout=3)
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._listener.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    # what a turn does
    async def event(self, kind, text="", heading="", meta=None, seq=None, context_id=None):
        seq = len(self.log) if seq is None else seq
        event = {"context_id": context_id or self.context_id, "sequence": seq, "event": kind}
        event["data"] = {"text": text, "heading": heading, "meta": meta or {}}
        self.log[seq:] = [event] if seq == len(self.log) else [event, *self.log[seq + 1 :]]
        await self.emit("connector_context_event", event)

    async def emit(self, name, data):
        for sid in self._sids:
            await self.sio.emit(name, {"handlerId": HANDLER, "data": data}, to=sid, namespace=NAMESPACE)

    async def complete(self):
        await self.emit("connector_context_complete", {"context_id": self.context_id})

    async def operation(self, name, op_id, **members):
        await self.emit(name, {"op_id": op_id, "context_id": self.context_id, **members})
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

    # handlers
    async def _connect(self, sid, environ, auth):
        if HANDLER not in (auth or {}).get("handlers", ()):
            raise socketio.exceptions.ConnectionRefusedError("no handlers")
        if self.user and "session=good" not in environ.get("HTTP_COOKIE", ""):
            raise socketio.exceptions.ConnectionRefusedError("AUTH_REQUIRED")
        self._sids = [*self._sids, sid]

    async def _hello(self, sid, data):
        self.hellos.append(data)
        return _ok({"protocol": self.protocol, "exec_config": {"code_exec_timeouts": {"max_exec_timeout": 20}}})

    async def _subscribe(self, sid, data):
        self.subscriptions.append(data)
        if data["context_id"] != self.context_id:
            return {"results": [{"ok": False, "error": {"code": "NOT_FOUND", "error": "no such context"}}]}
        events = self.log[data["from"] :]
        snapshot = {"context_id": self.context_id, "events": events}
        await self.sio.emit("connector_context_snapshot", {"data": snapshot}, to=sid, namespace=NAMESPACE)
        return _ok({})

    async def _message(self, sid, data):
        self._start(data)
        return _ok({"context_id": self.context_id})

    def _start(self, data):
        self.messages.append(data)
        task = asyncio.create_task(self._play(data))
        self._tasks.add(task)

    async def _play(self, data):
        await self.event("user_message", data["message"])
        if self.turns:
            await self.turns.pop(0)(self)
            await self.complete()

    async def _tree(self, sid, data):
        self.trees.append(data)
        return _ok({})

    async def _result(self, sid, data):
        async with self._result_added:
            self.results[data["op_id"]] = data
            self._result_added.notify_all()

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
            return JSONResponse({"protocol": self.protocol, "auth_required": bool(self.user), "features": []})
        if self.user and request.cookies.get("session") != "good":
            return RedirectResponse("/login", 302)
        self.posts.append((route, body))
        if route == "chat_create":
            return JSONResponse({"context_id": self.context_id})
        if route == "message_send":
            self._start(body)
        if route == "token_status":
            return JSONResponse({"ok": True, "tokens": 1234})
        if route == "unknown":
            return Response(status_code=404)
        return JSONResponse({"ok": True})


def _ok(data):
    return {"requestId": "r", "results": [{"handlerId": HANDLER, "ok": True, "data": data}]}
