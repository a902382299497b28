"""The guest that has the project's check run before a turn with edits ends, and hands its failure to the model."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ostler.backends.engine.guests.guest import Guest, View
from ostler.text.cut import cut_middle
from ostler.vocabulary.events import Notice, Reminded, ToolCalled, ToolFinished
from ostler.vocabulary.message import Message
from ostler.vocabulary.tools import ToolCall, ToolResult

MOST_ROUNDS = 3
MOST_TOLD = 12_000
_CHANGES = frozenset(["created", "updated", "deleted", "renamed"])
_CANNOT_RUN = (126, 127)
_NOT_INSTALLED = "No module named pytest"


class Checks(msgspec.Struct, frozen=True):
    """`find` tells the commands that check some changed files; each may take so many seconds."""

    find: Callable[[Sequence[str]], Sequence[str]] = lambda changed: ()
    seconds: float = 600.0


class ValidationGuest(Guest):
    """A failed check begins another step, a few times; one that could not run is told to the person and left."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._seen = 0
        self._rounds = 0

    async def before_end(self, view: View, message: Message) -> bool:
        start, self._seen = max(self._seen, view.begun), len(view.stage.records())
        changed = _changed(view, start)
        if self._rounds and not changed:
            view.stage.emit(Notice("warning", "the check still fails, and the model changed nothing more"))
            return False
        failed = [told for command in self._commands(changed) if (told := await self._check(view, command))]
        if not failed:
            self._rounds = 0
            return False
        if self._rounds >= MOST_ROUNDS:
            view.stage.emit(Notice("warning", f"the check still fails after {MOST_ROUNDS} tries to mend it"))
            return False
        self._rounds += 1
        view.stage.emit(Reminded("\n\n".join(failed)))
        return True

    def _commands(self, changed: Sequence[str]) -> Sequence[str]:
        return self._checks.find(changed) if changed else ()

    async def _check(self, view: View, command: str) -> str:
        """What the model must know of a check: nothing when it passed, or could not run."""
        stage = view.stage
        arguments = {"command": command, "timeout": min(self._checks.seconds, 3600.0), "reason": "check the edits"}
        call = ToolCall(f"check-{stage.records()[-1].seq + 1}", "bash", arguments, origin="validation")
        stage.emit(ToolCalled(call, kind="execute"))
        result = await stage.run_tool(call)
        if result.status == "ok":
            return ""
        if why := _not_run(result):
            stage.emit(Notice("warning", f"the check `{command}` could not run: {why}"))
            return ""
        told = cut_middle(result.for_model, MOST_TOLD).text
        return f"After your edits the project's check `{command}` fails. Mend what your edits broke.\n\n{told}"


def _not_run(result: ToolResult) -> str:
    """Why a check says nothing about the edits."""
    if result.status != "failed" or not isinstance(result.data, dict):
        return result.for_human.summary or result.for_model
    if result.data.get("exit_code") in _CANNOT_RUN or _NOT_INSTALLED in result.for_model:
        return result.for_model.strip().partition("\n")[0][:200]
    return ""


def _changed(view: View, start: int) -> list[str]:
    """The files that tools have changed since a record, each once."""
    records = view.stage.records()
    paths: dict[str, None] = {}
    for at in range(start, len(records)):
        event = records[at].event if records.kind(at) == "tool_finished" else None
        if isinstance(event, ToolFinished) and event.result.status == "ok" and isinstance(event.result.data, dict):
            paths.update(dict.fromkeys(_paths(event.result.data)))
    return list(paths)


def _paths(data: dict[str, Any]) -> list[str]:
    files = data.get("files")
    written = [data] if "operation" in data else files if isinstance(files, list) and not data.get("dry_run") else []
    return [one["path"] for one in written if isinstance(one, dict) and one.get("operation") in _CHANGES]
