"""The state of a background command."""

from typing import Literal

import msgspec


class BackgroundJob(msgspec.Struct, frozen=True):
    """The state of a background command. `log` is the file with its output, up to a size limit."""

    id: str
    command: str
    state: Literal["running", "exited", "killed"]
    exit_code: int | None
    seconds: float
    log: str
