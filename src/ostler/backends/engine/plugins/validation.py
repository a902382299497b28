"""Plugin that runs the project's checks after edits and returns failures to the model."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.core.errors import Fault, ToolError
from ostler.core.events import Notice, Reminded, ToolCalled, ToolFinished, ToolStarted, TurnEnded
from ostler.core.message import Message
from ostler.core.protocols import BackendContext
from ostler.core.tools import NO_CHECKS, FoundChecks, ToolCall, ToolResult
from ostler.text.truncate import truncate_middle

MAX_ROUNDS = 3
MAX_OUTPUT_LENGTH = 12_000
_CHANGE_OPERATIONS = frozenset(["created", "updated", "deleted", "renamed"])


ChangedFiles = Callable[[], Awaitable[Sequence[str]]]


async def no_changed_files() -> Sequence[str]:
    """Return nothing, where changes made by commands cannot be detected."""
    return ()


@runtime_checkable
class FindsChecks(Protocol):
    """A `ToolRunner` whose machine knows the checks of the files that it has."""

    async def find_checks(self) -> FoundChecks:
        """Return the checks for what its calls changed since the last time in this turn. Raises `ToolError`."""


class ValidationChecks(msgspec.Struct, frozen=True):
    """`find` returns the commands that check the changed files; `timeout` is in seconds per command.

    `changed_files` returns the files that changed since it was last called, whatever changed them. `ask` replaces all
    of these if the files are on another machine.
    """

    find: Callable[[Sequence[str]], Sequence[str]] = lambda changed: ()
    timeout: float = 600.0
    changed_files: ChangedFiles = no_changed_files
    ask: Callable[[], Awaitable[FoundChecks]] | None = None


class ValidationPlugin(LoopPlugin):
    """A failed check continues the turn, a limited number of times; a check that could not run is only reported."""

    def __init__(
        self, checks: ValidationChecks, *, max_rounds: int = MAX_ROUNDS, max_output: int = MAX_OUTPUT_LENGTH
    ) -> None:
        self._checks = checks
        self._max_rounds = max_rounds
        self._max_output = max_output
        self._read_count = 0
        self._rounds = 0

    async def before_end(self, view: TurnView, message: Message) -> TurnEnded | bool:
        found = await self._find_checks(view)
        commands = found.commands
        if self._rounds and not commands:
            return _failed_check_end("the check still fails and the model made no further changes")
        failed = [failure for command in commands if (failure := await self._run_check(view, command, found.seconds))]
        self._read_count = len(view.context.records())
        if not failed:
            self._rounds = 0
            return False
        if self._rounds >= self._max_rounds:
            attempts = "a repair attempt" if self._max_rounds == 1 else f"{self._max_rounds} repair attempts"
            return _failed_check_end(f"the check still fails after {attempts}")
        self._rounds += 1
        await self._checks.changed_files()  # files written by the check itself are not edits
        view.context.emit(Reminded("\n\n".join(failed)))
        return True

    async def on_limit(self, view: TurnView) -> None:
        self._warn_unchecked(view, (await self._find_checks(view)).commands)

    def on_cancel(self, view: TurnView) -> None:
        """Warn about unchecked edits; files changed by commands are not searched, which would take too long."""
        self._warn_unchecked(view, self._check_commands(_changes_since(view, self._first_unread(view))[0]))

    def _warn_unchecked(self, view: TurnView, commands: Sequence[str]) -> None:
        if self._rounds:
            view.context.emit(Notice("warning", "the check still failed when the turn ended"))
        elif commands:
            view.context.emit(Notice("warning", "the turn ended before its edits were checked"))

    def _first_unread(self, view: TurnView) -> int:
        return max(self._read_count, view.start_index)

    async def _find_checks(self, view: TurnView) -> FoundChecks:
        """Return the checks for what changed since the last ones."""
        start = self._first_unread(view)
        if self._checks.ask is None:
            commands = self._check_commands(await self._changed_since(view, start))
            return FoundChecks(tuple(commands), self._checks.timeout)
        if not any(_changes_since(view, start)):
            return NO_CHECKS
        try:
            return await self._checks.ask()
        except ToolError as error:
            view.context.emit(Notice("warning", str(error)))
            return NO_CHECKS

    async def _changed_since(self, view: TurnView, start: int) -> list[str]:
        """Return the files changed since a record index, by tools or by commands."""
        from ostler.knowledge.checks import is_build_output  # imported late, to keep the start fast

        edited, others = _changes_since(view, start)
        changed = await self._checks.changed_files() if others else ()
        return list(dict.fromkeys([*edited, *(path for path in changed if not is_build_output(path))]))

    def _check_commands(self, changed: Sequence[str]) -> Sequence[str]:
        return self._checks.find(changed) if changed else ()

    async def _run_check(self, view: TurnView, command: str, seconds: float) -> str:
        """Run a check. Return the text for the model, empty if it passed or could not run."""
        from ostler.knowledge.check_results import found_no_tests  # imported only when a check runs

        context = view.context
        result = await run_check(context, command, min(seconds, 3600.0))
        if result.status in ("ok", "failed") and found_no_tests(result.for_model):
            context.emit(Notice("warning", f"the check `{command}` found no tests; the edits are unchecked"))
            return ""
        if result.status == "ok":
            return ""
        if reason := _skip_reason(result):
            context.emit(Notice("warning", f"the check `{command}` could not run: {reason}"))
            return ""
        output = truncate_middle(result.for_model, self._max_output).text
        return f"The project's check `{command}` fails after your edits. Fix what they broke.\n\n{output}"


async def run_check(context: BackendContext, command: str, seconds: float) -> ToolResult:
    """Run a command that checks the project, as a call of Ostler itself."""
    arguments = {"command": command, "timeout": seconds}
    call = ToolCall(f"check-{context.records()[-1].seq + 1}", "bash", arguments, origin="validation")
    context.emit(ToolCalled(call, kind="execute"))
    return await context.run_tool(call)


def _failed_check_end(message: str) -> TurnEnded:
    return TurnEnded("", "failed", Fault("check_failed", message, "look at the output of the check above"))


def _skip_reason(result: ToolResult) -> str:
    """Return why a result says nothing about the edits, or an empty string."""
    from ostler.knowledge.check_results import missing_tool_message

    if result.status != "failed" or not isinstance(result.data, dict):
        return result.for_human.summary or result.for_model
    return missing_tool_message(result.for_model, result.data.get("exit_code"))


def _changes_since(view: TurnView, start: int) -> tuple[list[str], bool]:
    """Return the files that tools reported as changed since a record index, and whether other effects may exist."""
    records = view.context.records()
    paths: dict[str, None] = {}
    unreported: set[str] = set()
    for index in range(start, len(records)):
        event = records[index].event if records.type_at(index) in ("tool_started", "tool_finished") else None
        if isinstance(event, ToolStarted) and event.effects:
            unreported.add(event.call_id)
        elif isinstance(event, ToolFinished) and isinstance(event.result.data, dict):
            written = _written_paths(event.result.data)
            if written is not None:
                unreported.discard(event.result.call_id)
            if event.result.status == "ok":
                paths.update(dict.fromkeys(written or ()))
    return list(paths), bool(unreported)


def _written_paths(data: dict[str, Any]) -> list[str] | None:
    """Return the files that a result reports as changed, or None if it reports no files."""
    files = data.get("files")
    if "operation" not in data and not isinstance(files, list):
        return None
    written = [data] if "operation" in data else files if isinstance(files, list) and not data.get("dry_run") else []
    return [item["path"] for item in written if isinstance(item, dict) and item.get("operation") in _CHANGE_OPERATIONS]
