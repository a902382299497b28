"""Value types for problems in config files, origins, and settings that wait for trust."""

from typing import Any, Literal

import msgspec

from ostler.settings.jsonc_parser import KeyPath


class Problem(msgspec.Struct, frozen=True):
    """A problem in a config file. Lines and columns start at 1; 0 means that there is none."""

    file: str
    line: int
    column: int
    key: str
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{location}: {self.key} {self.message}" if self.key else f"{location}: {self.message}"


class SettingOrigin(msgspec.Struct, frozen=True):
    """Where a setting comes from: a layer, and the file and line or the variable that sets it."""

    layer: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        if not self.file:
            return self.layer
        return f"{self.file}:{self.line}" if self.line else self.file


class PendingSetting(msgspec.Struct, frozen=True):
    """A project setting without effect until the workspace is trusted. Secrets in `value` are masked."""

    key: str
    file: str
    line: int
    reason: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.key} is not in effect until you run `ostler trust`: {self.reason}"


def format_path(path: KeyPath) -> str:
    """Format a path as users write it: `models.profiles[0].name`."""
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
    """Format a value for a message: shortened, on one line, control characters escaped."""
    import json

    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _is_plain_key(step: str) -> bool:
    return bool(step) and len(step) <= 60 and step.isascii() and all(c.isalnum() or c in "_-$*/ " for c in step)
