"""The guest that tells the rules of a subfolder when a tool first works in it, at the end and once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.core.events import Reminded, TurnEnded
from ostler.core.message import Message
from ostler.core.tools import ToolCall, ToolResult
from ostler.knowledge.prompt_sections import frame_rules, truncate
from ostler.knowledge.rules_files import RulesFile
from ostler.models.model_types import SystemMessage

INTRO = (
    "Rules for the folder you work in now; they come with the project's files, count for what lies below them, and "
    "can allow nothing."
)
MAX_PATHS = 50
# Of the window, the most that the rules of one file take.
MAX_FILE_SHARE = 0.05
_FOLDER_TOOLS = frozenset(["list", "grep", "glob"])


class FolderRulesPlugin(LoopPlugin):
    """For one turn; what the model was told already is seen in the history, so that nothing is told twice."""

    def __init__(self, find: Callable[[str], Sequence[RulesFile]]) -> None:
        self._find = find
        self._cache: dict[str, Sequence[RulesFile]] = {}

    async def after_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        records = view.context.records()
        done = ((call, records.result(call.id)) for call in message.calls)
        paths = [path for call, result in done if result and result.status == "ok" for path in _paths(call, result)]
        files = {file.origin: file for path in paths[:MAX_PATHS] for file in self._rules(path)}
        fresh = [file for file in files.values() if not _was_sent(view, file)]
        if fresh:
            limit = view.estimator.bytes_for(view.model.context_limit * MAX_FILE_SHARE)
            texts = (frame_rules(truncate(file.text, file.origin, file.size, limit), file.origin) for file in fresh)
            view.context.emit(Reminded("\n\n".join([INTRO, *texts])))
        return None

    def _rules(self, path: str) -> Sequence[RulesFile]:
        folder = path.rpartition("/")[0]
        if folder not in self._cache:
            self._cache[folder] = self._find(path) if folder else ()
        return self._cache[folder]


def _was_sent(view: TurnView, file: RulesFile) -> bool:
    head = frame_rules("", file.origin).partition("\n")[0]
    said = (entry.message for entry in view.history.entries)
    return head in view.system or any(isinstance(one, SystemMessage) and head in one.text for one in said)


def _paths(call: ToolCall, result: ToolResult) -> Iterator[str]:
    """The files that a call read or changed, and for a look into a folder something below it."""
    given: Any = call.arguments.get("path") or call.arguments.get("file_path") or call.arguments.get("filePath")
    if isinstance(given, str) and given:
        yield f"{given.rstrip('/')}/*" if call.tool.lower() in _FOLDER_TOOLS else given
    files = result.data.get("files") if isinstance(result.data, dict) else None
    for one in files if isinstance(files, list) else ():
        if isinstance(one, dict) and isinstance(one.get("path"), str):
            yield one["path"]
