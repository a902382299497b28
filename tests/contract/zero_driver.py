"""Drivers for Agent Zero: a scripted server over real HTTP, and one with the connector over a real WebSocket."""

import asyncio
import json

from tests.backends.agent_zero.connector_double import ConnectorDouble

from ostler.backends.agent_zero.backend import AgentZeroBackend, ZeroPlan
from ostler.backends.agent_zero.connector_probe import probe_connector
from ostler.backends.agent_zero.connector_server import ConnectorServer, ConnectorSettings
from ostler.backends.agent_zero.message_api import MessageApiSettings, MessageApiTransport
from ostler.backends.agent_zero.server import ZeroServer, parse_server_url
from ostler.testing.fake_tool import FakeTool
from ostler.testing.zero_server import ScriptedZeroServer, zero_sse

NO_REMOTE_TURNS = "the message API cannot start a turn"
NO_MODEL = "the server selects its model"
OTHER_ERROR = "an error is also the final response, see tests/backends/agent_zero"
NOT_SHOWN = "the connector shows a turn only if a prompt of this session started it"
RESUMES = "a lost connection is resumed, see tests/backends/agent_zero/test_connector.py"
OPERATIONS = {"probe": "connector_write", "first": "connector_read", "second": "connector_write"}


class ServedBackend(AgentZeroBackend):
    """A backend that starts its server with the first prompt and stops it on closing."""

    def __init__(self, server, transport):
        super().__init__(ZeroPlan("the server", "this-host"), [self._probe])
        self._scripted = server
        self._make_transport = transport
        self._is_started = False

    async def _probe(self, start, listener):
        await self._scripted.__aenter__()
        self._is_started = True
        return await self._make_transport(start, listener)

    async def aclose(self):
        await super().aclose()
        if self._is_started:
            await self._scripted.__aexit__(AssertionError, AssertionError(), None)  # the driver checks the script


class ZeroDriver:
    """A server that answers each message with the next part of the script; a crash cuts the stream."""

    name = "agent_zero"
    cannot = {
        "turn started by the remote side": NO_REMOTE_TURNS,
        "option changed between turns": NO_MODEL,
        "connection lost": OTHER_ERROR,
    }
    tool = FakeTool

    def backend(self, turns, tools):
        self._server = ScriptedZeroServer([answer for moves in turns for answer in _answers(moves)])
        return ServedBackend(self._server, self._transport)

    async def _transport(self, start, listener):
        origin, path = parse_server_url(self._server.api_url)
        return MessageApiTransport(ZeroServer(origin, path), MessageApiSettings(), start, listener)

    def heard(self):
        return self._server.messages[-1]["message"]

    def finish(self):
        assert self._server.answers == []


def _answers(moves):
    """Return one stream per message: text, then calls, whose results are the next message."""
    answers, events = [], [{"context_id": "ctx00001"}]
    for move in moves:
        match type(move).__name__:
            case "Say":
                events.append({"delta": {"content": move.text}})
            case "Hold":
                events.append(move.until.wait)
            case "Calls":
                for call in move.calls:
                    request = {"type": "tool_request", "tool_name": call.tool, "payload": dict(call.arguments)}
                    events.append(json.loads(json.dumps({**request, "tool_call_id": call.id})))
                answers.append(zero_sse(*events))
                events = [{"context_id": "ctx00001"}]
    return [*answers, zero_sse(*events)]


class ConnectorDriver:
    """A server with the connector, whose agent uses its file tools; the tools of a scenario replace those."""

    name = "agent_zero_connector"
    cannot = {
        "turn started by the remote side": NOT_SHOWN,
        "option changed between turns": NO_MODEL,
        "connection lost": RESUMES,
    }

    def tool(self, name, behaviour=None, **more):
        return FakeTool(OPERATIONS[name], behaviour, **more)

    def backend(self, turns, tools):
        self._server = ConnectorDouble(*map(_play, turns))
        return ServedBackend(self._server, self._transport)

    async def _transport(self, start, listener):
        origin, _ = parse_server_url(self._server.url)
        settings = ConnectorSettings("this-host")
        return await probe_connector(ConnectorServer(origin, ""), settings, start, listener, has_key=False)

    def heard(self):
        return self._server.messages[-1]["message"]

    def finish(self):
        assert self._server.turns == []


def _play(moves):
    async def play(server):
        text, number, count = "", None, 0
        for move in moves:
            match type(move).__name__:
                case "Say":
                    text += move.text
                    await server.event("assistant_message", text, seq=number)
                    number = len(server.log) - 1 if number is None else number
                case "Hold":
                    await move.until.wait()
                case "Calls":
                    text, number = "", None
                    count += 1
                    calls = [_operation(server, call, f"op-{count}-{i}") for i, call in enumerate(move.calls)]
                    await asyncio.gather(*calls)

    return play


def _operation(server, call, op_id):
    path = str(call.arguments.get("subject", call.tool))
    write = OPERATIONS[call.tool] == "connector_write"
    members = {"op": "write", "content": "text"} if write else {"op": "read"}
    return server.operation("connector_file_op", call.id or op_id, path=path, **members)
