"""Drivers that make each backend run the same scenarios; a scenario is a list of moves of the model or remote agent."""

import asyncio
from pathlib import Path
from typing import Any, Protocol

import msgspec
from acp_driver import AcpDriver
from remote_driver import RemoteDriver
from server_driver import ServedEngine
from zero_driver import ConnectorDriver, ZeroDriver

from ostler.backends.engine.backend import Engine
from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import BackendError
from ostler.core.events import MessageDone, TextDelta, ToolCalled, TurnEnded
from ostler.core.message import CallPart, Message
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall, ToolSpec
from ostler.knowledge.agent_definition import AgentRole
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.testing.fake_tool import Behaviour, FakeTool
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel


class Say(msgspec.Struct, frozen=True):
    text: str


class Calls(msgspec.Struct, frozen=True):
    calls: tuple[ScriptedCall, ...]


class Hold(msgspec.Struct, frozen=True):
    """The remote side pauses until the event is set."""

    until: asyncio.Event


class Crash(msgspec.Struct, frozen=True):
    """The connection breaks in the middle of the reply."""


Move = Say | Calls | Hold | Crash


class Driver(Protocol):
    """Makes a backend whose remote side follows a script.

    `cannot` has the impossible scenarios by name, each with the reason. `folder` is set before `backend` is called.
    A driver with a method `successor` has a remote side that continues a turn without its client.
    """

    name: str
    cannot: dict[str, str]
    folder: Path

    def tool(self, name: str, behaviour: Behaviour | None = None, **more: Any) -> FakeTool:
        """Return the tool of a scenario, which calls it `probe`, `first` or `second`; usually `FakeTool` itself."""

    def backend(self, turns: list[list[Move]], tools: list[ToolSpec]) -> Any:
        """Return a backend whose remote side makes one list of moves per turn.

        It needs an attribute `context` if its remote side can start turns.
        """

    def heard(self) -> str:
        """Return what the remote side got with the latest prompt, notes included."""

    def finish(self) -> None:
        """Raise `AssertionError` if some turns of the script were not run."""


class EngineDriver:
    """The engine with a scripted model."""

    name = "engine"
    cannot = {"turn started by the remote side": "a model API cannot start a turn"}

    tool = FakeTool

    def backend(self, turns: list[list[Move]], tools: list[ToolSpec]) -> Engine:
        self.model = ScriptedModel(line for moves in turns for line in _lines(moves))
        return Engine(
            make_model=self._make_model, tools=lambda: tools, system=lambda: "You are under test.", roles=_role
        )

    def heard(self) -> str:
        return str(self.model.requests[-1].history)

    def _make_model(self, name: str) -> ScriptedModel:
        self.model.name = name or "scripted"
        return self.model

    def finish(self) -> None:
        self.model.finish()


def _role(name: str) -> AgentRole:
    agent = builtin_agents()[name or "build"]
    return AgentRole(agent.name, agent.prompt)


def _lines(moves: list[Move]) -> list[ScriptedLine]:
    """Return one script line per model call: text, then calls. The last line has no calls, so that the turn ends."""
    lines, text, pause = [], "", None
    for move in moves:
        match move:
            case Say(words):
                text += words
            case Hold(until):
                pause = until
            case Crash():
                lines.append(ScriptedLine(text, error="the connection was lost", pause=pause))
                return lines
            case Calls(calls):
                lines.append(ScriptedLine(text, calls, pause=pause))
                text, pause = "", None
    lines.append(ScriptedLine(text, pause=pause))
    return lines


class ScriptedDriver:
    """The scripted backend, which makes the moves through its context."""

    name = "scripted"
    cannot: dict[str, str] = {}

    tool = FakeTool

    def backend(self, turns: list[list[Move]], tools: list[ToolSpec]) -> ScriptedBackend:
        self._heard: list[str] = []
        self._backend = ScriptedBackend([_act(moves, number, self._heard) for number, moves in enumerate(turns)])
        return self._backend

    def heard(self) -> str:
        return self._heard[-1]

    def finish(self) -> None:
        self._backend.finish()


def _act(moves: list[Move], number: int, heard: list[str]):
    async def act(context, prompt):
        heard.append("\n".join([*context.unsent_notes(), prompt.text if prompt else ""]))
        count, text = 0, ""

        def message_id() -> str:
            """Deltas and the message that replaces them have one id; the next message has another."""
            return f"message-{number}-{count}"

        for move in moves:
            match move:
                case Say(words):
                    text += words
                    context.emit(TextDelta(message_id(), words))
                case Hold(until):
                    await until.wait()
                case Crash():
                    context.emit(MessageDone(Message(message_id(), (TextContent(text),), truncated=True)))
                    raise BackendError("the connection was lost")
                case Calls(calls):
                    tool_calls = [
                        ToolCall(c.id or f"call-{number}-{count}-{i}", c.tool, dict(c.arguments))
                        for i, c in enumerate(calls)
                    ]
                    parts = (*((TextContent(text),) if text else ()), *(CallPart(call) for call in tool_calls))
                    context.emit(MessageDone(Message(message_id(), parts)))
                    for call in tool_calls:
                        context.emit(ToolCalled(call))
                    await asyncio.gather(*(context.run_tool(call) for call in tool_calls))
                    count, text = count + 1, ""
        if text:
            context.emit(MessageDone(Message(message_id(), (TextContent(text),))))
        return TurnEnded("", "done")

    return act


class ServerDriver(EngineDriver):
    """The engine on a real server, and the tools here."""

    name = "server"
    cannot = {"takeover": "the server's process takes over its turn, not the client's"}
    folder: Path

    def backend(self, turns: list[list[Move]], tools: list[ToolSpec]) -> Any:
        self.turns, self.asked = len(turns), asyncio.Event()
        lines = [line for moves in turns for line in _lines(moves)]
        lines[:1] = [msgspec.structs.replace(line, check=lambda request: self.asked.set()) for line in lines[:1]]
        self.model = ScriptedModel(lines)
        return ServedEngine(self, tools)

    make_model = EngineDriver._make_model


DRIVERS = (ScriptedDriver, EngineDriver, AcpDriver, RemoteDriver, ServerDriver, ZeroDriver, ConnectorDriver)
