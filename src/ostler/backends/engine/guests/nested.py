"""The guest that tells the rules of a subfolder when a tool first works in it, at the end and once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ostler.backends.engine.guests.guest import Guest, View
from ostler.knowledge.parts import bounded, framed
from ostler.knowledge.rules import RulesFile
from ostler.models.words import SystemSaid
from ostler.vocabulary.events import Reminded, TurnEnded
from ostler.vocabulary.message import Message
from ostler.vocabulary.tools import ToolCall, ToolResult

INTRO = (
    "Rules for the folder you work in now; they come with the project's files, count for what lies below them, and "
    "can allow nothing."
)
MOST_PATHS = 50
# Of the window, the most that the rules of one file take.
SHARE = 0.05
_FOLDERS = frozenset(["list", "grep", "glob"])


class NestedGuest(Guest):
    """For one turn; what the model was told already is seen in the history, so that nothing is told twice."""

    def __init__(self, find: Callable[[str], Sequence[RulesFile]]) -> None:
        self._find = find
        self._found: dict[str, Sequence[RulesFile]] = {}

    async def after_tools(self, view: View, message: Message) -> TurnEnded | None:
        records = view.stage.records()
        done = ((call, records.result(call.id)) for call in message.calls)
        paths = [path for call, result in done if result and result.status == "ok" for path in _paths(call, result)]
        files = {file.origin: file for path in paths[:MOST_PATHS] for file in self._rules(path)}
        fresh = [file for file in files.values() if not _told(view, file)]
        if fresh:
            limit = view.meter.bytes(view.model.context_limit * SHARE)
            texts = (framed(bounded(file.text, file.origin, file.size, limit), file.origin) for file in fresh)
            view.stage.emit(Reminded("\n\n".join([INTRO, *texts])))
        return None

    def _rules(self, path: str) -> Sequence[RulesFile]:
        folder = path.rpartition("/")[0]
        if folder not in self._found:
            self._found[folder] = self._find(path) if folder else ()
        return self._found[folder]


def _told(view: View, file: RulesFile) -> bool:
    head = framed("", file.origin).partition("\n")[0]
    said = (entry.said for entry in view.history.entries)
    return head in view.system or any(isinstance(one, SystemSaid) and head in one.text for one in said)


def _paths(call: ToolCall, result: ToolResult) -> Iterator[str]:
    """The files that a call read or changed, and for a look into a folder something below it."""
    given: Any = call.arguments.get("path") or call.arguments.get("file_path") or call.arguments.get("filePath")
    if isinstance(given, str) and given:
        yield f"{given.rstrip('/')}/*" if call.tool.lower() in _FOLDERS else given
    files = result.data.get("files") if isinstance(result.data, dict) else None
    for one in files if isinstance(files, list) else ():
        if isinstance(one, dict) and isinstance(one.get("path"), str):
            yield one["path"]
