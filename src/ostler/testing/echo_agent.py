"""An ACP agent without a model: echoes prompts and runs `!command` lines; for testing clients.

Run it as `python -m ostler.testing.echo_agent`; `--help` lists its options. The commands are the methods of
`ostler.testing.echo_commands.EchoCommands`: `!read PATH`, `!write PATH TEXT`, `!run COMMAND`, `!ask KIND PATH` …
"""

import argparse
import asyncio
import os
import sys
import threading
import uuid
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import msgspec

from ostler.testing.echo_commands import EchoCommands
from ostler.wire.acp import (
    AUTH_REQUIRED,
    NOT_FOUND,
    AcpModel,
    AcpModelState,
    AvailableCommand,
    AvailableCommandInput,
    SessionConfigChoice,
    SessionConfigOption,
    SessionMode,
    SessionModeState,
    text_content,
)
from ostler.wire.acp_decode import decode_params
from ostler.wire.acp_requests import (
    AcpSessionInfo,
    AgentCapabilities,
    AuthMethod,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    OpenSessionParams,
    OpenSessionResponse,
    PromptCapabilities,
    PromptRequest,
    PromptResponse,
    SessionCapabilities,
)
from ostler.wire.acp_updates import AgentMessageChunk, AvailableCommandsUpdate, CurrentModeUpdate, UserMessageChunk
from ostler.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, JsonRpcPeer, Params, RpcError

MODES = (SessionMode("ask", "Ask"), SessionMode("code", "Code"))
MODELS = "small,large"
COMMANDS = (
    AvailableCommand("init", "begin"),
    AvailableCommand("plan", "make a plan", AvailableCommandInput("what to plan")),
)


class EchoAgent:
    """Handles the requests of a client. `flags` select its capabilities and faults."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.peer: JsonRpcPeer
        self.client: dict[str, Any] = {}
        self.modes: dict[str, str] = {}
        self.option_values: dict[str, Any] = {}
        self.steering_texts: dict[str, list[str]] = {}
        self.steering_received = asyncio.Event()
        self.cancel_events: dict[str, asyncio.Event] = {}
        self._logged_in = not flags.auth
        self._folders: dict[str, str] = {}

    # -- JSON-RPC handler ------------------------------------------------------------------------------------------

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        name = method.replace("/", "_")
        handler = getattr(self, f"on_{name}", None)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"unknown method {method!r}")
        if method == "session/prompt":
            self.cancel_events[self._require_open(params)] = asyncio.Event()
        result: Awaitable[Any] = handler(params)
        return result

    def handle_notification(self, method: str, params: Params) -> None:
        cancel_event = self.cancel_events.get(str(params.get("sessionId")))
        if method == "session/cancel" and cancel_event:
            cancel_event.set()

    # -- initialization --------------------------------------------------------------------------------------------

    async def on_initialize(self, params: Params) -> InitializeResponse:
        if self.flags.silent:
            await asyncio.Event().wait()
        self.client = dict(params)
        capabilities = SessionCapabilities(
            list={} if self.flags.store else None,
            delete={} if self.flags.store else None,
            resume={} if self.flags.resume else None,
            fork={} if self.flags.fork else None,
            close={},
            additional_directories={},
        )
        content = PromptCapabilities(image=True, embedded_context=True)
        return InitializeResponse(
            self.flags.version,
            AgentCapabilities(self._can_load, content, session_capabilities=capabilities),
            (AuthMethod(self.flags.auth, "Log in", "with a word"),) if self.flags.auth else (),
            Implementation("echo", "1", "Echo"),
            meta={"steering": {"supported": True}} if self.flags.steering else None,
        )

    @property
    def _can_load(self) -> bool:
        """Whether sessions can be loaded; without a store there are none to load."""
        return bool(self.flags.store) and not self.flags.no_load

    async def on_authenticate(self, params: Params) -> dict[str, Any]:
        if params.get("methodId") != self.flags.auth:
            raise RpcError(INVALID_PARAMS, "unknown authentication method")
        self._logged_in = True
        return {}

    # -- sessions --------------------------------------------------------------------------------------------------

    async def on_session_new(self, params: Params) -> OpenSessionResponse:
        if not self._logged_in:
            raise RpcError(AUTH_REQUIRED, "Authentication required")
        if self.flags.silent_new:
            await asyncio.Event().wait()
        request, session_id = _open_params(params), str(uuid.uuid4())
        self._append_history(session_id, "cwd", request.cwd)
        return self._start_session(session_id, request)

    async def on_session_load(self, params: Params) -> OpenSessionResponse:
        if self.flags.no_load:
            raise RpcError(METHOD_NOT_FOUND, "this agent does not load sessions")
        request, session_id = _open_params(params), _session_id_of(params)
        for role, text in self._read_history(session_id):
            if role != "cwd":
                chunk = UserMessageChunk if role == "user" else AgentMessageChunk
                self.update(session_id, chunk(text_content(text)))
        return _without_session_id(self._start_session(session_id, request))

    async def on_session_resume(self, params: Params) -> OpenSessionResponse:
        request, session_id = _open_params({"mcpServers": [], **params}), _session_id_of(params)
        self._read_history(session_id)
        return _without_session_id(self._start_session(session_id, request))

    async def on_session_fork(self, params: Params) -> OpenSessionResponse:
        if not self.flags.fork:
            raise RpcError(METHOD_NOT_FOUND, "this agent does not fork sessions")
        request, copy = _open_params({"mcpServers": [], **params}), str(uuid.uuid4())
        for role, text in self._read_history(_session_id_of(params)):
            self._append_history(copy, role, text)
        return self._start_session(copy, request)

    async def on_session_list(self, params: Params) -> ListSessionsResponse:
        store, requested_cwd = self._store_dir(), params.get("cwd")
        names = sorted(path.stem for path in store.glob("*.jsonl")) if store else []
        known = [(name, self._read_history(name)[0][1]) for name in names]
        return ListSessionsResponse(
            tuple(
                AcpSessionInfo(name, cwd, f"session {name[:8]}") for name, cwd in known if requested_cwd in (None, cwd)
            )
        )

    async def on_session_delete(self, params: Params) -> dict[str, Any]:
        """Delete a session. Deleting an unknown session is not an error."""
        if file := self._session_file(_session_id_of(params)):
            file.unlink(missing_ok=True)
        return {}

    async def on_session_close(self, params: Params) -> dict[str, Any]:
        session_id = self._require_open(params)
        if cancel_event := self.cancel_events.get(session_id):
            cancel_event.set()
        del self._folders[session_id]
        return {}

    async def on_session_set_mode(self, params: Params) -> dict[str, Any]:
        mode, session_id = params.get("modeId"), self._require_open(params)
        if mode not in {known.id for known in MODES}:
            raise RpcError(INVALID_PARAMS, f"unknown mode {mode!r}")
        self.modes[session_id] = mode
        self.update(session_id, CurrentModeUpdate(mode))
        return {}

    async def on_session_set_config_option(self, params: Params) -> dict[str, Any]:
        self._require_open(params)
        name, value = params.get("configId"), params.get("value")
        option = next(
            (candidate for candidate in self._config_options() if self.flags.config and candidate.id == name), None
        )
        if option is None:
            raise RpcError(INVALID_PARAMS, f"unknown option {name!r}")
        choices: list[Any] = [choice.value for choice in option.choices]
        if value not in (choices or [True, False]):
            raise RpcError(INVALID_PARAMS, f"{option.name} cannot be {value!r}")
        self.option_values[option.id] = value
        return {"configOptions": msgspec.to_builtins(self._config_options())}

    async def on_session_set_model(self, params: Params) -> dict[str, Any]:
        self._require_open(params)
        self.option_values["model"] = params.get("modelId")
        return {}

    async def on__session_steering(self, params: Params) -> dict[str, str]:
        """Add text to the running turn; an extension that several agents and clients support."""
        if not self.flags.steering:
            raise RpcError(METHOD_NOT_FOUND, "this agent does not accept input during a turn")
        session_id, request = self._require_open(params), decode_params(PromptRequest, params)
        if session_id not in self.cancel_events:
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        self.steering_texts.setdefault(session_id, []).append("".join(block.text or "" for block in request.prompt))
        self.steering_received.set()
        return {"outcome": "injected"}

    def _require_open(self, params: Params) -> str:
        """Return the session id in `params`. Raises `RpcError` if that session is not open."""
        session_id = _session_id_of(params)
        if session_id not in self._folders:
            raise RpcError(NOT_FOUND, "Resource not found", {"details": f"session {session_id[:80]!r} is not open"})
        return session_id

    def _start_session(self, session_id: str, request: OpenSessionParams) -> OpenSessionResponse:
        self._folders[session_id] = request.cwd
        self.mcp_servers = request.mcp_servers
        self.directories = request.additional_directories or ()
        if not self.flags.no_commands:
            asyncio.get_running_loop().call_soon(self.update, session_id, AvailableCommandsUpdate(COMMANDS))
        if self.flags.banner:
            self.update(session_id, AgentMessageChunk(text_content(self.flags.banner)))
        modes = None if self.flags.no_modes else SessionModeState(self.modes.get(session_id, "ask"), MODES)
        names = self.flags.models.split(",") if self.flags.models else []
        models = AcpModelState(names[0], tuple(AcpModel(name, name.title()) for name in names)) if names else None
        return OpenSessionResponse(session_id, modes, self._config_options() if self.flags.config else None, models)

    def _config_options(self) -> tuple[SessionConfigOption, ...]:
        models = tuple(SessionConfigChoice(name.title(), name) for name in MODELS.split(","))
        modes = tuple(SessionConfigChoice(mode.name, mode.id) for mode in MODES)
        return (
            SessionConfigOption(
                "the-model", "Model", "select", self.option_values.get("the-model", "small"), models, "model"
            ),
            SessionConfigOption("the-mode", "Mode", "select", self.option_values.get("the-mode", "ask"), modes, "mode"),
            SessionConfigOption("fast", "Fast", "boolean", self.option_values.get("fast", False)),
        )

    # -- turns -----------------------------------------------------------------------------------------------------

    async def on_session_prompt(self, params: Params) -> PromptResponse:
        request = decode_params(PromptRequest, params)
        text = "\n".join(block.text or "" for block in request.prompt if block.type == "text")
        text = self._next_scripted_prompt() or text
        commands = EchoCommands(self, request)
        self._append_history(request.session_id, "user", text)
        response = await commands.run(text)
        self.cancel_events.pop(request.session_id, None)
        self._append_history(request.session_id, "agent", commands.reply_text)
        return response

    def _next_scripted_prompt(self) -> str:
        """Remove and return the next prompt of the script file, so that another process continues with the rest."""
        file = Path(self.flags.script) if self.flags.script else None
        script: list[str] = msgspec.json.decode(file.read_bytes()) if file else []
        if file and script:
            file.write_bytes(msgspec.json.encode(script[1:]))
        return script[0] if script else ""

    def update(self, session_id: str, update: msgspec.Struct | dict[str, Any]) -> None:
        """Send a session update to the client."""
        self.peer.notify("session/update", {"sessionId": session_id, "update": update})

    def folder(self, session_id: str) -> str:
        """Return the working directory of a session."""
        return self._folders.get(session_id, os.getcwd())

    # -- stored sessions -------------------------------------------------------------------------------------------

    def _store_dir(self) -> Path | None:
        return Path(self.flags.store) if self.flags.store else None

    def _session_file(self, session_id: str) -> Path | None:
        """Return the file of a session, or None without a store or if the id is not a plain name."""
        store = self._store_dir()
        return store / f"{session_id}.jsonl" if store and Path(session_id).name == session_id else None

    def _read_history(self, session_id: str) -> list[tuple[str, str]]:
        file = self._session_file(session_id)
        if file is None or not file.exists():
            raise RpcError(NOT_FOUND, "Resource not found", {"details": f"there is no session {session_id}"})
        return [tuple(msgspec.json.decode(line)) for line in file.read_bytes().splitlines()]

    def _append_history(self, session_id: str, role: str, text: str) -> None:
        if file := self._session_file(session_id):
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("ab") as opened:
                opened.write(msgspec.json.encode([role, text]) + b"\n")


class _SessionParams(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str


def _session_id_of(params: Params) -> str:
    return decode_params(_SessionParams, params).session_id


def _open_params(params: Params) -> OpenSessionParams:
    request = decode_params(OpenSessionParams, params)
    if not all(os.path.isabs(folder) for folder in (request.cwd, *(request.additional_directories or ()))):
        raise RpcError(INVALID_PARAMS, "cwd and additionalDirectories must be absolute paths")
    return request


def _without_session_id(opened: OpenSessionResponse) -> OpenSessionResponse:
    """Remove the id, which the client already knows."""
    return msgspec.structs.replace(opened, session_id=None)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser("echo_agent", description=__doc__)
    parser.add_argument(
        "--store", metavar="DIR", default="", help="store sessions in this folder, so that they can be loaded"
    )
    parser.add_argument("--no-load", action="store_true", help="cannot load sessions")
    parser.add_argument("--resume", action="store_true", help="can resume sessions without a replay")
    parser.add_argument("--fork", action="store_true", help="can copy sessions")
    parser.add_argument("--steering", action="store_true", help="accepts input during a turn")
    parser.add_argument("--no-modes", action="store_true", help="has no modes")
    parser.add_argument("--config", action="store_true", help="has config options")
    parser.add_argument("--models", nargs="?", const=MODELS, metavar="NAMES", help="offers models in the older form")
    parser.add_argument(
        "--script", metavar="FILE", default="", help="a JSON list of prompts to run instead of the received ones"
    )
    parser.add_argument("--no-commands", action="store_true", help="has no slash commands")
    parser.add_argument("--auth", metavar="ID", default="", help="requires a login with this method")
    parser.add_argument("--version", type=int, default=1, metavar="N", help="answers this protocol version")
    parser.add_argument("--banner", metavar="TEXT", default="", help="sends this text before the first prompt")
    parser.add_argument("--silent", action="store_true", help="never answers initialize")
    parser.add_argument("--silent-new", action="store_true", help="never answers session/new")
    parser.add_argument("--exit", type=int, metavar="CODE", help="writes a reason to stderr and exits immediately")
    parser.add_argument("--ignore-eof", action="store_true", help="keeps running when its input ends")
    parser.add_argument("rest", nargs="*", help="any arguments; `!args` shows them")
    return parser.parse_args(arguments)


async def serve(flags: argparse.Namespace) -> None:
    """Serve on the standard streams until the input ends."""
    agent = EchoAgent(flags)
    agent.peer = JsonRpcPeer(_write, agent, is_server=True)
    loop, input_ended = asyncio.get_running_loop(), asyncio.Event()

    def read_input() -> None:
        while data := os.read(0, 65536):
            loop.call_soon_threadsafe(agent.peer.feed, data)
        loop.call_soon_threadsafe(input_ended.set)

    threading.Thread(target=read_input, daemon=True).start()
    await input_ended.wait()
    if flags.ignore_eof:
        await asyncio.Event().wait()
    await agent.peer.aclose()


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def main() -> None:
    flags = parse_arguments(sys.argv[1:])
    if flags.exit is not None:
        sys.stderr.write("echo_agent: the moon is in the wrong phase\n")
        raise SystemExit(flags.exit)
    asyncio.run(serve(flags))


if __name__ == "__main__":
    main()
