"""The guest that has the project's check run before a turn with edits ends, and hands its failure to the model."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.core.events import Notice, Reminded, ToolCalled, ToolFinished, ToolStarted
from ostler.core.message import Message
from ostler.core.tools import ToolCall, ToolResult
from ostler.text.truncate import truncate_middle

MAX_ROUNDS = 3
MAX_OUTPUT_LENGTH = 12_000
_CHANGE_OPERATIONS = frozenset(["created", "updated", "deleted", "renamed"])


ChangedFiles = Callable[[], Awaitable[Sequence[str]]]


async def no_changed_files() -> Sequence[str]:
    """Where nobody can tell what commands changed."""
    return ()


class ValidationChecks(msgspec.Struct, frozen=True):
    """`find` tells the commands that check some changed files; each may take so many seconds.

    `news` tells the files that changed since it was last asked in the turn, whatever changed them.
    """

    find: Callable[[Sequence[str]], Sequence[str]] = lambda changed: ()
    timeout: float = 600.0
    changed_files: ChangedFiles = no_changed_files


class ValidationPlugin(LoopPlugin):
    """A failed check begins another step, a few times; one that could not run is told to the person and left."""

    def __init__(self, checks: ValidationChecks) -> None:
        self._checks = checks
        self._read_count = 0
        self._rounds = 0

    async def before_end(self, view: TurnView, message: Message) -> bool:
        commands = self._check_commands(await self._changed_since(view, max(self._read_count, view.start_index)))
        if self._rounds and not commands:
            view.context.emit(Notice("warning", "the check still fails, and the model changed nothing more"))
            return False
        failed = [told for command in commands if (told := await self._run_check(view, command))]
        self._read_count = len(view.context.records())
        if not failed:
            self._rounds = 0
            return False
        if self._rounds >= MAX_ROUNDS:
            view.context.emit(Notice("warning", f"the check still fails after {MAX_ROUNDS} tries to mend it"))
            return False
        self._rounds += 1
        await self._checks.changed_files()  # what the check itself left behind is no edit
        view.context.emit(Reminded("\n\n".join(failed)))
        return True

    async def on_limit(self, view: TurnView) -> None:
        self._warn_unchecked(view, await self._changed_since(view, max(self._read_count, view.start_index)))

    def on_cancel(self, view: TurnView) -> None:
        """What commands changed would have to be looked for, which takes too long."""
        self._warn_unchecked(view, _changes_since(view, max(self._read_count, view.start_index))[0])

    def _warn_unchecked(self, view: TurnView, changed: Sequence[str]) -> None:
        if self._rounds:
            view.context.emit(Notice("warning", "the check still failed when the turn ended"))
        elif self._check_commands(changed):
            view.context.emit(Notice("warning", "the turn ended before its edits were checked"))

    async def _changed_since(self, view: TurnView, start: int) -> list[str]:
        """The files that were changed since a record, by whatever: those that tools tell of, and what commands did."""
        from ostler.knowledge.checks import is_build_output  # read while the model thinks

        edited, others = _changes_since(view, start)
        news = await self._checks.changed_files() if others else ()
        return list(dict.fromkeys([*edited, *(path for path in news if not is_build_output(path))]))

    def _check_commands(self, changed: Sequence[str]) -> Sequence[str]:
        return self._checks.find(changed) if changed else ()

    async def _run_check(self, view: TurnView, command: str) -> str:
        """What the model must know of a check: nothing when it passed, or could not run."""
        from ostler.knowledge.check_results import found_no_tests  # only who ran a check pays for it

        context = view.context
        arguments = {"command": command, "timeout": min(self._checks.timeout, 3600.0), "reason": "check the edits"}
        call = ToolCall(f"check-{context.records()[-1].seq + 1}", "bash", arguments, origin="validation")
        context.emit(ToolCalled(call, kind="execute"))
        result = await context.run_tool(call)
        if result.status in ("ok", "failed") and found_no_tests(result.for_model):
            context.emit(Notice("warning", f"the check `{command}` found no tests, so the edits are unchecked"))
            return ""
        if result.status == "ok":
            return ""
        if why := _skip_reason(result):
            context.emit(Notice("warning", f"the check `{command}` could not run: {why}"))
            return ""
        told = truncate_middle(result.for_model, MAX_OUTPUT_LENGTH).text
        return f"After your edits the project's check `{command}` fails. Mend what your edits broke.\n\n{told}"


def _skip_reason(result: ToolResult) -> str:
    """Why a check says nothing about the edits."""
    from ostler.knowledge.check_results import missing_tool_message

    if result.status != "failed" or not isinstance(result.data, dict):
        return result.for_human.summary or result.for_model
    return missing_tool_message(result.for_model, result.data.get("exit_code"))


def _changes_since(view: TurnView, start: int) -> tuple[list[str], bool]:
    """The files that tools say they changed since a record, and whether anything ran that does not say."""
    records = view.context.records()
    paths: dict[str, None] = {}
    silent: set[str] = set()
    for at in range(start, len(records)):
        event = records[at].event if records.type_at(at) in ("tool_started", "tool_finished") else None
        if isinstance(event, ToolStarted) and event.effects:
            silent.add(event.call_id)
        elif isinstance(event, ToolFinished) and isinstance(event.result.data, dict):
            told = _written_paths(event.result.data)
            if told is not None:
                silent.discard(event.result.call_id)
            if event.result.status == "ok":
                paths.update(dict.fromkeys(told or ()))
    return list(paths), bool(silent)


def _written_paths(data: dict[str, Any]) -> list[str] | None:
    """The files that a result says were changed; None for one that speaks of no files."""
    files = data.get("files")
    if "operation" not in data and not isinstance(files, list):
        return None
    written = [data] if "operation" in data else files if isinstance(files, list) and not data.get("dry_run") else []
    return [one["path"] for one in written if isinstance(one, dict) and one.get("operation") in _CHANGE_OPERATIONS]
