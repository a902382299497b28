"""Command-line options of a run as plain values."""

from typing import Literal

import msgspec

from ostler.core.sessions import Mode


class RunOptions(msgspec.Struct, frozen=True):
    """The parsed flags; empty values are unset.

    With `take_tools` the tools of a server's session run here, also if another client runs them now.
    With `later_servers` a client may pass in MCP servers, so `allow` can name tools that are not known yet.
    """

    cwd: str
    model: dict[str, str] = {}
    write: bool = False
    yolo: bool = False
    allow: tuple[str, ...] = ()
    profile: str = ""
    mode: Mode | Literal[""] = ""
    trust: bool = False
    max_steps: int = 0
    max_tokens: int = 0
    max_cost: float = 0
    max_time: float = 0
    ephemeral: bool = False
    agent: str = ""
    backend: str = ""
    take_tools: bool = False
    later_servers: bool = False

    def unattended(self) -> "RunOptions":
        """Return the options of a session without a user, in which accepting edits is the same as allowing them."""
        return msgspec.structs.replace(self, write=self.write or self.mode == "accept-edits")
