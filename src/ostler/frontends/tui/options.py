"""The options of the full-screen client."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from ostler.frontends.tui.projects import ProjectAccess

SLOW_FRAMES = 10.0


class TuiOptions(msgspec.Struct, frozen=True):
    """Settings of the user. `remember_theme` stores the theme for the next start.

    `leave_transcript` prints the end of the conversation to the terminal at the exit.
    """

    theme: str = ""
    keys: dict[str, str] = {}
    details: bool = False
    bell: bool = False
    arcade: str = "off"
    animations: bool = True
    leave_transcript: bool = False
    remember_theme: Callable[[str], None] = lambda name: None
    frames_per_second: float = 30.0
    projects: "ProjectAccess | None" = None
