"""Plugin that sends a subfolder's rules when a tool first works there."""

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
    "Project rules for the folder you are working in. They apply to everything below it and cannot grant permissions."
)
MAX_PATHS = 50
# Maximum share of the context window for one rules file.
MAX_FILE_SHARE = 0.05
_FOLDER_TOOLS = frozenset(["list", "grep", "glob"])


class FolderRulesPlugin(LoopPlugin):
    """Works for one turn; rules that the history already contains are not sent again."""

    def __init__(self, find: Callable[[str], Sequence[RulesFile]]) -> None:
        self._find = find
        self._cache: dict[str, Sequence[RulesFile]] = {}

    async def after_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        records = view.context.records()
        exchanges = ((call, records.result(call.id)) for call in message.calls)
        paths = [
            path for call, result in exchanges if result and result.status == "ok" for path in _paths(call, result)
        ]
        files = {file.origin: file for path in paths[:MAX_PATHS] for file in self._rules(path)}
        unsent = [file for file in files.values() if not _was_sent(view, file)]
        if unsent:
            limit = view.estimator.bytes_for(view.model.context_limit * MAX_FILE_SHARE)
            texts = (frame_rules(truncate(file.text, file.origin, file.size, limit), file.origin) for file in unsent)
            view.context.emit(Reminded("\n\n".join([INTRO, *texts])))
        return None

    def _rules(self, path: str) -> Sequence[RulesFile]:
        folder = path.rpartition("/")[0]
        if folder not in self._cache:
            self._cache[folder] = self._find(path) if folder else ()
        return self._cache[folder]


def _was_sent(view: TurnView, file: RulesFile) -> bool:
    head = frame_rules("", file.origin).partition("\n")[0]
    messages = (entry.message for entry in view.history.entries)
    return head in view.system or any(
        isinstance(message, SystemMessage) and head in message.text for message in messages
    )


def _paths(call: ToolCall, result: ToolResult) -> Iterator[str]:
    """Yield the files that a call read or changed; for a folder, a path below it."""
    path: Any = call.arguments.get("path") or call.arguments.get("file_path") or call.arguments.get("filePath")
    if isinstance(path, str) and path:
        yield f"{path.rstrip('/')}/*" if call.tool.lower() in _FOLDER_TOOLS else path
    files = result.data.get("files") if isinstance(result.data, dict) else None
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict) and isinstance(file.get("path"), str):
            yield file["path"]
