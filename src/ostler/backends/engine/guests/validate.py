"""The guest that has the project's check run before a turn with edits ends, and hands its failure to the model."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from ostler.backends.engine.guests.guest import Guest, View
from ostler.text.cut import cut_middle
from ostler.vocabulary.events import Notice, Reminded, ToolCalled, ToolFinished, ToolStarted
from ostler.vocabulary.message import Message
from ostler.vocabulary.tools import ToolCall, ToolResult

MOST_ROUNDS = 3
MOST_TOLD = 12_000
_CHANGES = frozenset(["created", "updated", "deleted", "renamed"])


News = Callable[[], Awaitable[Sequence[str]]]


async def no_news() -> Sequence[str]:
    """Where nobody can tell what commands changed."""
    return ()


class Checks(msgspec.Struct, frozen=True):
    """`find` tells the commands that check some changed files; each may take so many seconds.

    `news` tells the files that changed since it was last asked in the turn, whatever changed them.
    """

    find: Callable[[Sequence[str]], Sequence[str]] = lambda changed: ()
    seconds: float = 600.0
    news: News = no_news


class ValidationGuest(Guest):
    """A failed check begins another step, a few times; one that could not run is told to the person and left."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._seen = 0
        self._rounds = 0

    async def before_end(self, view: View, message: Message) -> bool:
        commands = self._commands(await self._changed(view, max(self._seen, view.begun)))
        if self._rounds and not commands:
            view.stage.emit(Notice("warning", "the check still fails, and the model changed nothing more"))
            return False
        failed = [told for command in commands if (told := await self._check(view, command))]
        self._seen = len(view.stage.records())
        if not failed:
            self._rounds = 0
            return False
        if self._rounds >= MOST_ROUNDS:
            view.stage.emit(Notice("warning", f"the check still fails after {MOST_ROUNDS} tries to mend it"))
            return False
        self._rounds += 1
        await self._checks.news()  # what the check itself left behind is no edit
        view.stage.emit(Reminded("\n\n".join(failed)))
        return True

    async def cut_short(self, view: View) -> None:
        self._tell_unchecked(view, await self._changed(view, max(self._seen, view.begun)))

    def stopped(self, view: View) -> None:
        """What commands changed would have to be looked for, which takes too long."""
        self._tell_unchecked(view, _work_of(view, max(self._seen, view.begun))[0])

    def _tell_unchecked(self, view: View, changed: Sequence[str]) -> None:
        if self._rounds:
            view.stage.emit(Notice("warning", "the check still failed when the turn ended"))
        elif self._commands(changed):
            view.stage.emit(Notice("warning", "the turn ended before its edits were checked"))

    async def _changed(self, view: View, start: int) -> list[str]:
        """The files that were changed since a record, by whatever: those that tools tell of, and what commands did."""
        from ostler.knowledge.checks import is_product  # read while the model thinks

        edited, others = _work_of(view, start)
        news = await self._checks.news() if others else ()
        return list(dict.fromkeys([*edited, *(path for path in news if not is_product(path))]))

    def _commands(self, changed: Sequence[str]) -> Sequence[str]:
        return self._checks.find(changed) if changed else ()

    async def _check(self, view: View, command: str) -> str:
        """What the model must know of a check: nothing when it passed, or could not run."""
        from ostler.knowledge.check_outcomes import found_no_tests  # only who ran a check pays for it

        stage = view.stage
        arguments = {"command": command, "timeout": min(self._checks.seconds, 3600.0), "reason": "check the edits"}
        call = ToolCall(f"check-{stage.records()[-1].seq + 1}", "bash", arguments, origin="validation")
        stage.emit(ToolCalled(call, kind="execute"))
        result = await stage.run_tool(call)
        if result.status in ("ok", "failed") and found_no_tests(result.for_model):
            stage.emit(Notice("warning", f"the check `{command}` found no tests, so the edits are unchecked"))
            return ""
        if result.status == "ok":
            return ""
        if why := _not_run(result):
            stage.emit(Notice("warning", f"the check `{command}` could not run: {why}"))
            return ""
        told = cut_middle(result.for_model, MOST_TOLD).text
        return f"After your edits the project's check `{command}` fails. Mend what your edits broke.\n\n{told}"


def _not_run(result: ToolResult) -> str:
    """Why a check says nothing about the edits."""
    from ostler.knowledge.check_outcomes import lacking

    if result.status != "failed" or not isinstance(result.data, dict):
        return result.for_human.summary or result.for_model
    return lacking(result.for_model, result.data.get("exit_code"))


def _work_of(view: View, start: int) -> tuple[list[str], bool]:
    """The files that tools say they changed since a record, and whether anything ran that does not say."""
    records = view.stage.records()
    paths: dict[str, None] = {}
    silent: set[str] = set()
    for at in range(start, len(records)):
        event = records[at].event if records.kind(at) in ("tool_started", "tool_finished") else None
        if isinstance(event, ToolStarted) and event.effects:
            silent.add(event.call_id)
        elif isinstance(event, ToolFinished) and isinstance(event.result.data, dict):
            told = _written(event.result.data)
            if told is not None:
                silent.discard(event.result.call_id)
            if event.result.status == "ok":
                paths.update(dict.fromkeys(told or ()))
    return list(paths), bool(silent)


def _written(data: dict[str, Any]) -> list[str] | None:
    """The files that a result says were changed; None for one that speaks of no files."""
    files = data.get("files")
    if "operation" not in data and not isinstance(files, list):
        return None
    written = [data] if "operation" in data else files if isinstance(files, list) and not data.get("dry_run") else []
    return [one["path"] for one in written if isinstance(one, dict) and one.get("operation") in _CHANGES]
