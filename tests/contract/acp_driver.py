"""Driver for ACP agents: the echo agent with a script, in its own process.

An agent uses its own tools, and only the files and terminals of its client. The tools of a scenario therefore replace
the tools for the protocol's file requests.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from msgspec.structs import replace

from ostler.backends.acp.backend import AcpBackend, AcpSessionPlan
from ostler.backends.acp.client_requests import ClientServices
from ostler.core.permission import Need
from ostler.stdio_rpc.program import Launch
from ostler.testing.fake_tool import FakeTool
from ostler.tools.protocol.terminals import Terminals

NAMES = {"probe": "write_text_file", "first": "read_text_file", "second": "write_text_file"}
INSTRUCTIONS = {"write_text_file": "!write {} text", "read_text_file": "!read {}"}
NO_CALL_IDS = "a file request of the protocol has no call id that could be repeated"
NO_REMOTE_TURNS = "the protocol has no request with which an agent starts a turn"


class FileRequestTool(FakeTool):
    """A tool that answers a file request of the protocol."""

    async def run(self, params, context):
        result = await super().run(params, context)
        return replace(result, data={"content": result.for_model})


async def make_needs(kind, title, paths, command, edits):
    return (Need("agent", title),)


class AcpDriver:
    """An agent process that follows the script of a scenario; a crash ends the process."""

    name = "acp"
    cannot = {"repeated call id": NO_CALL_IDS, "turn started by the remote side": NO_REMOTE_TURNS}

    def __init__(self):
        self.folder: Path
        self._frames = []
        self._gates = []
        self._gate_tasks = []

    def tool(self, name, behaviour=None, **more):
        return FileRequestTool(NAMES[name], behaviour, **more)

    def backend(self, turns, tools):
        self._script = self.folder / "script.json"
        self._script.write_text(json.dumps(["\n".join(map(self._instruction, moves)) for moves in turns]))
        flags = ("--script", str(self._script), "--models", "scripted,another", "--steering")
        args = ("-m", "ostler.testing.echo_agent", *flags)
        launch = Launch(sys.executable, args, os.environ, str(self.folder), "echo")
        services = ClientServices(make_needs, Terminals())
        return AcpBackend(AcpSessionPlan(launch, "test"), services, mirror=lambda _, line: self._frames.append(line))

    def heard(self):
        """Return the text of the latest prompt that the agent got."""
        prompts = [frame for frame in map(json.loads, self._frames) if frame.get("method") == "session/prompt"]
        return "\n".join(block.get("text", "") for block in prompts[-1]["params"]["prompt"])

    def finish(self):
        """Raise if turns of the script were not run."""
        assert json.loads(self._script.read_text()) == []
        for gate in self._gates:
            os.close(gate)

    def _instruction(self, move):
        match type(move).__name__:
            case "Say":
                return f"!say {move.text}"
            case "Crash":
                return "!crash 1 the connection was lost"
            case "Hold":
                return f"!hold {self._gate(move.until)}"
            case "Calls":
                return "!together " + " & ".join(map(_call, move.calls))
        raise AssertionError(f"no instruction for {move}")

    def _gate(self, until):
        """Create a pipe on which the agent waits until the event is set."""
        path = str(self.folder / f"gate-{len(self._gates)}")
        os.mkfifo(path)
        self._gates.append(os.open(path, os.O_RDWR))
        self._gate_tasks.append(asyncio.create_task(_open_gate(self._gates[-1], until)))
        return path


def _call(call):
    tool = NAMES[call.tool]
    return INSTRUCTIONS[tool].format(call.arguments.get("subject", call.tool))


async def _open_gate(gate, until):
    await until.wait()
    os.write(gate, b"open")
