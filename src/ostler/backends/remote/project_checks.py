"""Answers which of the project's checks the edits of a turn need, and says which calls are such checks."""

from collections.abc import Sequence
from typing import Protocol

from ostler.core.tools import CallOrigin, ToolCall

CHECK_TOOL = "bash"
CHECK_ARGUMENTS = {"command", "timeout"}


class HostChecks(Protocol):
    """The checks of the folder on this machine. `seconds` is how long one may take."""

    seconds: float

    async def find(self, edited: Sequence[str], *, others: bool) -> Sequence[str]:
        """Return the commands that check these files, and with `others` also files that commands changed."""

    async def forget_changes(self) -> None:
        """Do not count what changed until now as edits."""


class ProjectChecks:
    """The checks of the running turn. The server asks when; which commands are checks is decided here.

    A command is a check only if this machine named it in this turn, after edits.
    """

    def __init__(self, checks: HostChecks | None) -> None:
        self._checks = checks
        self._edited: dict[str, None] = {}
        self._unchecked: dict[str, None] = {}  # their checks were named, but none has run
        self._others = False
        self._commands: set[str] = set()
        self._answers: dict[str, Sequence[str]] = {}

    async def recall(self) -> None:
        """Name the checks again that an earlier process may have named in this turn."""
        if self._checks and not self._answers and (self._edited or self._others):
            self._commands.update(await self._checks.find(list(self._edited), others=self._others))

    def begin_turn(self) -> None:
        self._edited, self._unchecked, self._others = {}, {}, False
        self._commands.clear()
        self._answers.clear()

    def add_changes(self, files: Sequence[str], *, others: bool) -> None:
        """Note the files that a call wrote, or with `others` that it may have changed files that it did not report."""
        self._edited.update(dict.fromkeys(files))
        self._others = self._others or others

    async def answer(self, request_id: str) -> dict[str, object]:
        """Return the checks of the changes since the last request. A repeated request gets the same answer."""
        if self._checks is None:
            return {"commands": []}
        if request_id not in self._answers:
            edited, others = list(self._unchecked | self._edited), self._others
            self._edited, self._others = {}, False
            commands = await self._checks.find(edited, others=others) if edited or others else ()
            self._unchecked = dict.fromkeys(edited if commands else ())
            self._answers[request_id] = tuple(commands)
            self._commands.update(commands)
        return {"commands": list(self._answers[request_id]), "seconds": self._checks.seconds}

    def origin(self, call: ToolCall) -> CallOrigin:
        """Return whether a call is a check that this machine named; every other one is treated as the model's."""
        command = call.arguments.get("command")
        is_check = (
            call.tool == CHECK_TOOL
            and isinstance(command, str)
            and command in self._commands
            and CHECK_ARGUMENTS.issuperset(call.arguments)
        )
        return "validation" if is_check and call.origin == "validation" else "model"

    def forget_edits(self) -> None:
        """Note that a check has run after the edits so far."""
        self._edited, self._unchecked, self._others = {}, {}, False

    async def finish_check(self) -> None:
        """Files that a check wrote are not edits."""
        self._unchecked = {}
        if self._checks:
            await self._checks.forget_changes()
