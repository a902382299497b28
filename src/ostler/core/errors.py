"""Errors, each named by who must react; what they say is one sentence that tells what to do.

OstlerError
├── UsageError      the person must change a flag, a file or a setting       (exit 2)
├── BackendError    whoever thinks failed; the turn ends                      (exit 1)
├── JournalError    what remembers cannot; nothing more may happen            (exit 1)
└── ToolFailure     the model must mend its call or adapt; becomes a result
    └── PathRefused the ground will not go there
"""

from typing import Literal

import msgspec


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as a value: what events and results carry of it."""

    code: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class OstlerError(Exception):
    """The base of all errors that are not bugs."""

    exit_code = 1
    code = "error"

    def __init__(self, message: str, *, code: str | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.fault = Fault(code or self.code, message, hint)

    def __str__(self) -> str:
        return str(self.fault)


class UsageError(OstlerError):
    """The person must change a flag, a file or a setting."""

    exit_code = 2
    code = "usage"


class BackendError(OstlerError):
    """Whoever thinks failed; the turn ends."""

    code = "backend"


class JournalError(OstlerError):
    """The journal cannot keep what happened; nothing more may happen."""

    code = "journal"


class ToolError(OstlerError):
    """A call failed in a way the model must react to."""

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
    """The ground will not go to a path: a code, the path and the reason."""

    def __init__(self, code: PathErrorCode, path: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", code=code, hint=hint)
        self.path = path
        self.reason = reason
