"""What a session with a server needs besides the connection."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ostler.backends.remote.project_checks import HostChecks
from ostler.backends.remote.stream import RetryDelays
from ostler.core.tools import ToolSpec
from ostler.wire.frames_shared import RemoteWorkspace


class RemotePlan(msgspec.Struct, frozen=True):
    """What a session with a server needs besides the connection.

    `tools` are all tools that the server may call; those in `server_only` are left out if the server does not have
    them. `host_name` is the name of this machine. `session_id` is the server's session to use, if it is not a new one.
    With `takes_tools` the tools run on this machine, also if another one is the tool host.
    With `others_may_answer` other clients of the session may answer approval requests of this machine.
    `restore` gets the texts of a resumed conversation: by the id of the message, and prompts by their record here.
    """

    version: str
    host_name: str
    tools: Callable[[], Sequence[ToolSpec]]
    workspace: Callable[[], RemoteWorkspace | None] = lambda: None
    model: str = ""
    session_id: str = ""
    takes_tools: bool = False
    others_may_answer: bool = False
    server_only: frozenset[str] = frozenset({"task"})
    restore: Callable[[Mapping[str, str], Mapping[int, str]], None] | None = None
    delays: RetryDelays = RetryDelays()
    checks: HostChecks | None = None
