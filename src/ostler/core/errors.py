"""Error classes, grouped by who has to react: the user, the backend, the journal or the model.

OstlerError
├── UsageError      the user must change a flag, a file or a setting        (exit 2)
├── BackendError    the backend failed; the turn ends                       (exit 1)
├── JournalError    the session cannot be saved; the turn stops             (exit 1)
└── ToolError       a tool call failed; returned to the model as a result
    └── PathError   a path cannot be used
"""

from typing import Literal

import msgspec

WRITE_DENIED = "write_denied"  # the code of the fault of a command that failed because the workspace was read-only


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as a value, for events and results."""

    code: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class OstlerError(Exception):
    """Base class of all expected errors; any other exception is a bug."""

    exit_code = 1
    code = "error"

    def __init__(self, message: str, *, code: str | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.fault = Fault(code or self.code, message, hint)

    def __str__(self) -> str:
        return str(self.fault)


class UsageError(OstlerError):
    """The user must change a flag, a file or a setting."""

    exit_code = 2
    code = "usage"


class BackendError(OstlerError):
    """The backend failed; the turn ends."""

    code = "backend"


class JournalError(OstlerError):
    """The session cannot be saved; the turn stops."""

    code = "journal"


class ToolError(OstlerError):
    """A tool call failed; the error is returned to the model as a failed result."""

    code = "failed"


PathErrorCode = Literal[
    "outside_workspace",
    "bad_path",
    "not_found",
    "not_a_file",
    "not_a_directory",
    "already_exists",
    "too_large",
    "binary",
    "unencodable",
    "changed_on_disk",
    "denied_by_system",
    "io_error",
]


class PathError(ToolError):
    """A path cannot be used in the workspace, with an error code and the reason."""

    def __init__(self, code: PathErrorCode, path: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", code=code, hint=hint)
        self.path = path
        self.reason = reason
