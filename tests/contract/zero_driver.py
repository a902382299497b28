"""Driver for Agent Zero: a scripted server over real HTTP, which plays each turn as a stream."""

import json

from ostler.backends.agent_zero.backend import AgentZeroBackend, ZeroPlan
from ostler.backends.agent_zero.message_api import MessageApiSettings, MessageApiTransport
from ostler.backends.agent_zero.server import ZeroServer, parse_server_url
from ostler.testing.fake_tool import FakeTool
from ostler.testing.zero_server import ScriptedZeroServer, zero_sse

NO_REMOTE_TURNS = "the message API cannot start a turn"
NO_MODEL = "the server selects its model"
OTHER_ERROR = "an error is also the final response, see tests/backends/agent_zero"


class ServedBackend(AgentZeroBackend):
    """A backend that starts its server with the first prompt and stops it on closing."""

    def __init__(self, plan, server):
        super().__init__(plan, [self._probe])
        self._scripted = server

    async def _probe(self, start, listener):
        await self._scripted.__aenter__()
        origin, path = parse_server_url(self._scripted.api_url)
        return MessageApiTransport(ZeroServer(origin, path), MessageApiSettings(), start, listener)

    async def aclose(self):
        await super().aclose()
        if self._scripted.port:
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
        return ServedBackend(ZeroPlan("the server", "this-host"), self._server)

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
