"""How an ACP agent is made to play the scenes: the echo agent with a script, in a process of its own."""

import json
import os
import sys
import tempfile
from pathlib import Path

from ostler.backends.acp.backend import AcpBackend, Plan
from ostler.backends.acp.process import Launch
from ostler.backends.acp.serving import Powers
from ostler.tools.protocol.terminals import Terminals
from ostler.vocabulary.permission import Need

OWN_TOOLS = "an ACP agent calls its own tools; of ours it knows only files and terminals"
NO_STEERING = "the protocol has no words for the middle of a turn"


async def foresee(kind, title, paths, command):
    return (Need("agent", title),)


class AcpDriver:
    """An agent's process that says what the scene wants; a crash takes the process along."""

    name = "acp"
    cannot = {
        **dict.fromkeys(
            (
                *("tool", "refusal with feedback", "cancel while asking", "cancel while running", "two asks at once"),
                *("unattended ask", "a call repeated by id", "resume"),
            ),
            OWN_TOOLS,
        ),
        "steer": NO_STEERING,
        "a turn begun by the far side": "an ACP agent begins no turn by itself",
    }

    def backend(self, turns, tools):
        self.folder = Path(tempfile.mkdtemp())
        script = self.folder / "script.json"
        script.write_text(json.dumps(["\n".join(map(_order, moves)) for moves in turns]))
        args = ("-m", "ostler.testing.echo_agent", "--script", str(script), "--models", "scripted,another")
        launch = Launch(sys.executable, args, os.environ, str(self.folder), "echo")
        return AcpBackend(Plan(launch, "test"), Powers(foresee, Terminals()))

    def finish(self):
        (self.folder / "script.json").unlink()
        self.folder.rmdir()


def _order(move):
    match type(move).__name__:
        case "Say":
            return f"!say {move.text}"
        case "Crash":
            return "!crash 1 the connection was lost"
    raise AssertionError(f"no order for {move}")
