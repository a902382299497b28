"""An ACP agent without a model, for trying clients: it echoes prompts, and a line that begins with `!` is an order.

Run it as `python -m ostler.testing.echo_agent`; `--help` lists what it can pretend to be, and the orders are the
methods of `ostler.testing.echo_orders.Orders`: `!read PATH`, `!write PATH TEXT`, `!run COMMAND`, `!ask KIND PATH` …
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

from ostler.testing.echo_orders import Orders
from ostler.wire.acp import (
    AUTH_REQUIRED,
    NOT_FOUND,
    Command,
    CommandInput,
    ConfigChoice,
    ConfigOption,
    Mode,
    Models,
    ModelWord,
    Modes,
    text_content,
)
from ostler.wire.acp_calls import (
    AgentCapabilities,
    AuthMethod,
    Implementation,
    Initialized,
    ListedSession,
    OpenSession,
    PromptAnswer,
    PromptCapabilities,
    PromptRequest,
    SessionCapabilities,
    SessionOpen,
    SessionsListed,
)
from ostler.wire.acp_read import read
from ostler.wire.acp_updates import AgentMessageChunk, CommandsTold, ModeChanged, UserMessageChunk
from ostler.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Params, Peer, RpcError

MODES = (Mode("ask", "Ask"), Mode("code", "Code"))
MODELS = "small,large"
COMMANDS = (Command("init", "begin"), Command("plan", "make a plan", CommandInput("what to plan")))


class EchoAgent:
    """Answers the protocol's requests; what it pretends to be is in `flags`."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.peer: Peer
        self.client: dict[str, Any] = {}
        self.modes: dict[str, str] = {}
        self.set: dict[str, Any] = {}
        self.cancelled: dict[str, asyncio.Event] = {}
        self._logged_in = not flags.auth
        self._folders: dict[str, str] = {}

    # -- the peer's handler ----------------------------------------------------------------------------------------

    def requested(self, method: str, params: Params) -> Awaitable[Any]:
        name = method.replace("/", "_")
        handler = getattr(self, f"on_{name}", None)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"there is no method {method!r}")
        if method == "session/prompt":
            self.cancelled[str(params.get("sessionId"))] = asyncio.Event()
        answer: Awaitable[Any] = handler(params)
        return answer

    def notified(self, method: str, params: Params) -> None:
        stop = self.cancelled.get(str(params.get("sessionId")))
        if method == "session/cancel" and stop:
            stop.set()

    # -- to begin with ---------------------------------------------------------------------------------------------

    async def on_initialize(self, params: Params) -> Initialized:
        if self.flags.silent:
            await asyncio.Event().wait()
        self.client = dict(params)
        can = SessionCapabilities(
            list={} if self.flags.store else None,
            delete={} if self.flags.store else None,
            resume={} if self.flags.resume else None,
            close={},
            additional_directories={},
        )
        content = PromptCapabilities(image=True, embedded_context=True)
        return Initialized(
            self.flags.version,
            AgentCapabilities(not self.flags.no_load, content, session_capabilities=can),
            (AuthMethod(self.flags.auth, "Log in", "with a word"),) if self.flags.auth else (),
            Implementation("echo", "1", "Echo"),
        )

    async def on_authenticate(self, params: Params) -> dict[str, Any]:
        if params.get("methodId") != self.flags.auth:
            raise RpcError(INVALID_PARAMS, "there is no such way to log in")
        self._logged_in = True
        return {}

    # -- sessions --------------------------------------------------------------------------------------------------

    async def on_session_new(self, params: Params) -> SessionOpen:
        if not self._logged_in:
            raise RpcError(AUTH_REQUIRED, "Authentication required")
        if self.flags.silent_new:
            await asyncio.Event().wait()
        return self._opened(str(uuid.uuid4()), read(OpenSession, params))

    async def on_session_load(self, params: Params) -> SessionOpen:
        if self.flags.no_load:
            raise RpcError(METHOD_NOT_FOUND, "this agent loads no sessions")
        session_id = str(params.get("sessionId"))
        for role, text in self._past(session_id):
            chunk = UserMessageChunk if role == "user" else AgentMessageChunk
            self.update(session_id, chunk(text_content(text)))
        return msgspec.structs.replace(self._opened(session_id, read(OpenSession, params)), session_id=None)

    async def on_session_resume(self, params: Params) -> SessionOpen:
        session_id = str(params.get("sessionId"))
        self._past(session_id)
        return msgspec.structs.replace(self._opened(session_id, read(OpenSession, params)), session_id=None)

    async def on_session_list(self, params: Params) -> SessionsListed:
        store = self._store()
        names = sorted(path.stem for path in store.glob("*.jsonl")) if store else []
        return SessionsListed(tuple(ListedSession(name, os.getcwd(), f"session {name[:8]}") for name in names))

    async def on_session_delete(self, params: Params) -> dict[str, Any]:
        self._past(str(params.get("sessionId")))
        store = self._store()
        if store:
            (store / f"{params['sessionId']}.jsonl").unlink()
        return {}

    async def on_session_close(self, params: Params) -> dict[str, Any]:
        return {}

    async def on_session_set_mode(self, params: Params) -> dict[str, Any]:
        mode, session_id = str(params.get("modeId")), str(params.get("sessionId"))
        if mode not in {known.id for known in MODES}:
            raise RpcError(INVALID_PARAMS, f"there is no mode {mode!r}")
        self.modes[session_id] = mode
        self.update(session_id, ModeChanged(mode))
        return {}

    async def on_session_set_config_option(self, params: Params) -> dict[str, Any]:
        self.set[str(params.get("configId"))] = params.get("value")
        return {"configOptions": msgspec.to_builtins(self._config())}

    async def on_session_set_model(self, params: Params) -> dict[str, Any]:
        self.set["model"] = params.get("modelId")
        return {}

    def _opened(self, session_id: str, asked: OpenSession) -> SessionOpen:
        self._folders[session_id] = asked.cwd
        self.mcp = asked.mcp_servers
        self.directories = asked.additional_directories or ()
        if not self.flags.no_commands:
            asyncio.get_running_loop().call_later(0.01, self.update, session_id, CommandsTold(COMMANDS))
        if self.flags.banner:
            self.update(session_id, AgentMessageChunk(text_content(self.flags.banner)))
        modes = None if self.flags.no_modes else Modes(self.modes.get(session_id, "ask"), MODES)
        names = self.flags.models.split(",") if self.flags.models else []
        models = Models(names[0], tuple(ModelWord(name, name.title()) for name in names)) if names else None
        return SessionOpen(session_id, modes, self._config() if self.flags.config else None, models)

    def _config(self) -> tuple[ConfigOption, ...]:
        models = tuple(ConfigChoice(name.title(), name) for name in MODELS.split(","))
        modes = tuple(ConfigChoice(mode.name, mode.id) for mode in MODES)
        return (
            ConfigOption("the-model", "Model", "select", self.set.get("the-model", "small"), models, "model"),
            ConfigOption("the-mode", "Mode", "select", self.set.get("the-mode", "ask"), modes, "mode"),
            ConfigOption("fast", "Fast", "boolean", self.set.get("fast", False)),
        )

    # -- turns -----------------------------------------------------------------------------------------------------

    async def on_session_prompt(self, params: Params) -> PromptAnswer:
        asked = read(PromptRequest, params)
        said = "\n".join(block.text or "" for block in asked.prompt if block.type == "text")
        said = self._scripted() or said
        orders = Orders(self, asked)
        self._remember(asked.session_id, "user", said)
        answer = await orders.obey(said)
        self._remember(asked.session_id, "agent", orders.told)
        return answer

    def _scripted(self) -> str:
        """The next prompt of the script; what is played is struck out, so another process plays the rest."""
        file = Path(self.flags.script) if self.flags.script else None
        script: list[str] = msgspec.json.decode(file.read_bytes()) if file else []
        if file and script:
            file.write_bytes(msgspec.json.encode(script[1:]))
        return script[0] if script else ""

    def update(self, session_id: str, update: msgspec.Struct | dict[str, Any]) -> None:
        """Tell the client something."""
        self.peer.notify("session/update", {"sessionId": session_id, "update": update})

    def folder(self, session_id: str) -> str:
        """Where a session works."""
        return self._folders.get(session_id, os.getcwd())

    # -- what it remembers -----------------------------------------------------------------------------------------

    def _store(self) -> Path | None:
        return Path(self.flags.store) if self.flags.store else None

    def _past(self, session_id: str) -> list[tuple[str, str]]:
        store = self._store()
        file = store / f"{session_id}.jsonl" if store else None
        if file is None or not file.exists():
            raise RpcError(NOT_FOUND, "Resource not found", {"details": f"there is no session {session_id}"})
        return [tuple(msgspec.json.decode(line)) for line in file.read_bytes().splitlines()]

    def _remember(self, session_id: str, role: str, text: str) -> None:
        if store := self._store():
            store.mkdir(parents=True, exist_ok=True)
            with (store / f"{session_id}.jsonl").open("ab") as file:
                file.write(msgspec.json.encode([role, text]) + b"\n")


def parsed(arguments: list[str]) -> argparse.Namespace:
    """What it shall pretend to be."""
    parser = argparse.ArgumentParser("echo_agent", description=__doc__)
    parser.add_argument("--store", metavar="DIR", default="", help="keep sessions there, so that they can be loaded")
    parser.add_argument("--no-load", action="store_true", help="cannot load sessions")
    parser.add_argument("--resume", action="store_true", help="can resume sessions without a replay")
    parser.add_argument("--no-modes", action="store_true", help="has no modes")
    parser.add_argument("--config", action="store_true", help="has config options")
    parser.add_argument("--models", nargs="?", const=MODELS, metavar="NAMES", help="has models the old way")
    parser.add_argument(
        "--script", metavar="FILE", default="", help="a JSON list of prompts to play instead of the real"
    )
    parser.add_argument("--no-commands", action="store_true", help="has no slash commands")
    parser.add_argument("--auth", metavar="ID", default="", help="wants a login by this method")
    parser.add_argument("--version", type=int, default=1, metavar="N", help="answers this protocol version")
    parser.add_argument("--banner", metavar="TEXT", default="", help="says this before the first prompt")
    parser.add_argument("--silent", action="store_true", help="never answers initialize")
    parser.add_argument("--silent-new", action="store_true", help="never answers session/new")
    parser.add_argument("--exit", type=int, metavar="CODE", help="says why on stderr and ends at once")
    parser.add_argument("--ignore-eof", action="store_true", help="stays when its input ends")
    parser.add_argument("rest", nargs="*", help="anything; `!args` tells it")
    return parser.parse_args(arguments)


async def serve(flags: argparse.Namespace) -> None:
    """Speak on standard streams until the input ends."""
    agent = EchoAgent(flags)
    agent.peer = Peer(_write, agent, serves=True)
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def listen() -> None:
        while data := os.read(0, 65536):
            loop.call_soon_threadsafe(agent.peer.feed, data)
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=listen, daemon=True).start()
    await over.wait()
    if flags.ignore_eof:
        await asyncio.Event().wait()
    await agent.peer.aclose()


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def main() -> None:
    """The agent's process."""
    flags = parsed(sys.argv[1:])
    if flags.exit is not None:
        sys.stderr.write("echo_agent: the moon is in the wrong phase\n")
        raise SystemExit(flags.exit)
    asyncio.run(serve(flags))


if __name__ == "__main__":
    main()
