"""What is wrong with a config, where, and what is held back of it, as plain values."""

from typing import Any, Literal

import msgspec

from ostler.settings.jsonc_parser import KeyPath


class Problem(msgspec.Struct, frozen=True):
    """One thing to mend in one file; lines and columns count from 1, and 0 means that there is none."""

    file: str
    line: int
    column: int
    key: str
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.key} {self.message}" if self.key else f"{place}: {self.message}"


class SettingOrigin(msgspec.Struct, frozen=True):
    """Where a setting comes from: a layer, and the file and line (or the variable) that said it."""

    layer: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        if not self.file:
            return self.layer
        return f"{self.file}:{self.line}" if self.line else self.file


class PendingSetting(msgspec.Struct, frozen=True):
    """A setting of the project that waits until the workspace is trusted; `value` has its secrets masked."""

    key: str
    file: str
    line: int
    reason: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.key} waits until you trust this folder: {self.reason}"


def format_path(path: KeyPath) -> str:
    """A path as a person writes it: `models.profiles[0].name`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _is_plain_key(step):
            text += f".{step}" if text else step
        else:
            text += f"[{quote_value(step)}]"
    return text


def quote_value(value: Any) -> str:
    """A value from a file, fit for a message: short, on one line, nothing that a terminal would obey."""
    import json

    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _is_plain_key(step: str) -> bool:
    return bool(step) and len(step) <= 60 and step.isascii() and all(c.isalnum() or c in "_-$*/ " for c in step)
