"""What a session with a server needs besides the connection."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ostler.backends.remote.project_checks import HostChecks
from ostler.backends.remote.stream import RetryDelays
from ostler.core.tools import ToolSpec
from ostler.wire.frames_shared import HostInfo, RemoteWorkspace


class RemotePlan(msgspec.Struct, frozen=True):
    """What a session with a server needs besides the connection.

    `tools` are all tools that the server may call; those in `server_only` are left out if the server does not have
    them. `session_id` is the server's session to use, if it is not a new one.
    `restore` gets the texts of a resumed conversation: by the id of the message, and prompts by their record here.
    """

    version: str
    host: HostInfo
    tools: Callable[[], Sequence[ToolSpec]]
    workspace: Callable[[], RemoteWorkspace | None] = lambda: None
    model: str = ""
    session_id: str = ""
    take_host: bool = False
    server_only: frozenset[str] = frozenset({"task"})
    restore: Callable[[Mapping[str, str], Mapping[int, str]], None] | None = None
    delays: RetryDelays = RetryDelays()
    checks: HostChecks | None = None
