"""What the full-screen client is started with."""

from collections.abc import Callable
from pathlib import Path

import msgspec


class TuiOptions(msgspec.Struct, frozen=True):
    """Settings of the user and of the project. `remember_theme` stores the theme for the next start."""

    project: str
    theme: str = ""
    keys: dict[str, str] = {}
    details: bool = False
    bell: bool = False
    history: Path | None = None
    is_sensitive: Callable[[str], bool] = lambda text: False
    remember_theme: Callable[[str], None] = lambda name: None
    frames_per_second: float = 30.0
