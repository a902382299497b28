"""How an ACP agent is made to play the scenes: the echo agent with a script, in a process of its own.

An agent has tools of its own; of ours it knows files and terminals. So the tools of a scene are what it may ask its
client for: they stand behind the same door, under the names that the protocol's requests have there.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from msgspec.structs import replace

from ostler.backends.acp.backend import AcpBackend, AcpSessionPlan
from ostler.backends.acp.client_requests import ClientServices
from ostler.backends.acp.process import Launch
from ostler.core.permission import Need
from ostler.testing.fake_tool import FakeTool
from ostler.tools.protocol.terminals import Terminals

NAMES = {"probe": "write_text_file", "first": "read_text_file", "second": "write_text_file"}
ORDERS = {"write_text_file": "!write {} text", "read_text_file": "!read {}"}
NO_CALL_IDS = "a file request of the protocol has no id of a call that could come twice; its frame's id never does"
NOT_BY_ITSELF = "an ACP agent begins no turn by itself: the protocol has no request for it"


class LentTool(FakeTool):
    """One that answers a request for a file."""

    async def run(self, params, context):
        result = await super().run(params, context)
        return replace(result, data={"content": result.for_model})


async def foresee(kind, title, paths, command, edits):
    return (Need("agent", title),)


class AcpDriver:
    """An agent's process that says what the scene wants; a crash takes the process along."""

    name = "acp"
    cannot = {"a call repeated by id": NO_CALL_IDS, "a turn begun by the far side": NOT_BY_ITSELF}

    def __init__(self):
        self.folder: Path
        self._gates = []
        self._opening = []

    def tool(self, name, behaviour=None, **more):
        return LentTool(NAMES[name], behaviour, **more)

    def backend(self, turns, tools):
        self._script = self.folder / "script.json"
        self._script.write_text(json.dumps(["\n".join(map(self._order, moves)) for moves in turns]))
        flags = ("--script", str(self._script), "--models", "scripted,another", "--steering")
        args = ("-m", "ostler.testing.echo_agent", *flags)
        launch = Launch(sys.executable, args, os.environ, str(self.folder), "echo")
        return AcpBackend(AcpSessionPlan(launch, "test"), ClientServices(foresee, Terminals()))

    def finish(self):
        """Raise if turns were left over."""
        assert json.loads(self._script.read_text()) == []
        for gate in self._gates:
            os.close(gate)

    def _order(self, move):
        match type(move).__name__:
            case "Say":
                return f"!say {move.text}"
            case "Crash":
                return "!crash 1 the connection was lost"
            case "Hold":
                return f"!hold {self._gate(move.until)}"
            case "Calls":
                return "!together " + " & ".join(map(_call, move.calls))
        raise AssertionError(f"no order for {move}")

    def _gate(self, until):
        """A pipe that the agent waits at; it opens with the event."""
        path = str(self.folder / f"gate-{len(self._gates)}")
        os.mkfifo(path)
        self._gates.append(os.open(path, os.O_RDWR))
        self._opening.append(asyncio.create_task(_open_gate(self._gates[-1], until)))
        return path


def _call(call):
    tool = NAMES[call.tool]
    return ORDERS[tool].format(call.arguments.get("subject", call.tool))


async def _open_gate(gate, until):
    await until.wait()
    os.write(gate, b"open")
