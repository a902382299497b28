"""Shows a small model the files that its prompt is about, before its first reply."""

import asyncio
import re
from collections.abc import Sequence

from ostler.backends.engine.plugins.plugin import TurnView
from ostler.backends.engine.plugins.validation import run_check
from ostler.backends.engine.role import last_reminder
from ostler.backends.engine.text_edits.text_editing import TextEditing
from ostler.core.events import Reminded, ToolFinished
from ostler.core.message import CallPart, Message
from ostler.core.tools import ToolCall
from ostler.knowledge.check_results import found_no_tests, missing_tool_message
from ostler.knowledge.repo_map import MapFile, RepoMap, build_map, files_with, is_test_file, new_paths, renamed_symbols
from ostler.text.request_kind import asks_for_change, is_question
from ostler.text.truncate import truncate_middle

SHOWN_PREFIX = "shown-"  # of the messages and calls that show files
FILES_SHARE = 0.35  # of the context window, for the content of files
MAX_FILES_BYTES = 9_000
MAX_GUESS_BYTES = 3_000
MAX_MAP_BYTES = 700
MAX_CHECK_OUTPUT = 1_200
CHECK_SECONDS = 60.0
BYTES_PER_TOKEN = 3
LONG_FILE_BYTES = 5_000
EXCERPT_LINES = 60

SEARCH_FORMAT = """\
{paths} is long: do not repeat it. Write only the lines that change, under its path, like this:

PATH
```
<<<<<<< SEARCH
lines copied exactly from the file
=======
the new lines
>>>>>>> REPLACE
```"""
_FAILING = re.compile(
    r"\b(tests?|checks?|build|suite)\b.{0,60}\b(fail\w*|broken|break\w*|red|error\w*|wrong)\b"
    r"|\b(fail\w*|broken|red)\b.{0,40}\b(tests?|checks?|build|suite)\b",
    re.IGNORECASE | re.DOTALL,
)
_FILE_IN_OUTPUT = re.compile(r"[\w./-]+\.\w{1,5}")


class FirstContext:
    """Selects files for a prompt and shows them as results of `read` calls, so that the files are known to be read."""

    def __init__(self, editing: TextEditing) -> None:
        self._editing = editing
        self.map = RepoMap()

    async def show(self, view: TurnView, prompt_id: str, prompt: str) -> Message | None:
        """Emit the map and return a message with the calls that read the files, or None if there are none."""
        output = await self._run_failing_check(view, prompt)
        hints = [path.removeprefix("./") for path in _FILE_IN_OUTPUT.findall(output)]
        hints += [path.removeprefix(f"{self._editing.root}/") for path in hints]
        self.map = await asyncio.to_thread(build_map, self._editing.root, prompt, hints)
        shown, excerpts = self._select(view, prompt, has_output=bool(output))
        notes = [*_notes(prompt, self.map), *([output] if output else [])]
        text = _describe(self.map, shown, excerpts, notes, may_edit=asks_for_change(prompt))
        if text != last_reminder(view.context.records(), text):
            view.context.emit(Reminded(text))
        earlier = shown_files(view)
        calls: list[dict[str, object]] = [
            {"path": file.path} for file in shown if earlier.get(file.path) != file.text.rstrip("\n")
        ]
        calls += [_excerpt(file, prompt) for file in excerpts]
        parts = (ToolCall(f"{SHOWN_PREFIX}{prompt_id}-{number}", "read", call) for number, call in enumerate(calls))
        return Message(f"{SHOWN_PREFIX}{prompt_id}", tuple(map(CallPart, parts))) if calls else None

    def _select(self, view: TurnView, prompt: str, *, has_output: bool) -> tuple[list[MapFile], list[MapFile]]:
        """Return the files to show completely, and those to show in part."""
        budget = min(int(view.model.context_limit * FILES_SHARE * BYTES_PER_TOKEN), MAX_FILES_BYTES)
        asks = is_question(prompt) or "?" in prompt
        if asks and not any(file.is_named for file in self.map.files) and self.map.total_size <= MAX_GUESS_BYTES:
            return self.map.files, []
        if self.map.is_guess:  # without a word to go by, only questions about the whole are worth reading files
            shown = self.map.select(prompt, min(budget, MAX_GUESS_BYTES)) if asks else []
            return shown, [file for file in self.map.files[:1] if asks and file not in shown]
        shown = self.map.select(prompt, budget)
        if not shown and self.map.files and self.map.files[0].score > 0:
            return [], [self.map.files[0]]
        if has_output and any(not is_test_file(file.path) for file in shown):  # the output quotes the tests
            shown = [file for file in shown if file.is_named or not is_test_file(file.path)]
        return shown, [file for file in self.map.files if file.is_named and file not in shown]

    async def _run_failing_check(self, view: TurnView, prompt: str) -> str:
        """Run the project's check if the prompt says that it fails. Return its output, empty if it did not fail."""
        if not _FAILING.search(prompt) or not view.has_tool("bash"):
            return ""
        for command in self._editing.find_checks(["*.py"])[:1]:
            result = await run_check(view.context, command, CHECK_SECONDS)
            code = result.data.get("exit_code") if isinstance(result.data, dict) else None
            text = result.for_model
            if result.status == "failed" and not found_no_tests(text) and not missing_tool_message(text, code):
                return f"`{command}` fails:\n{truncate_middle(text, MAX_CHECK_OUTPUT).text}"
        return ""


def shown_files(view: TurnView) -> dict[str, str]:
    """Return the latest text of each file that was read completely in this session, without the last newline."""
    records = view.context.records()
    files: dict[str, str] = {}
    for index in records.indexes_of(("tool_finished",)):
        event = records[index].event
        data = event.result.data if isinstance(event, ToolFinished) and event.result.status == "ok" else None
        if not isinstance(data, dict) or not isinstance(path := data.get("path"), str):
            continue
        if "operation" in data:
            files.pop(path, None)
        elif isinstance(content := data.get("content"), str) and not data.get("truncated") and data.get("line") == 1:
            files[path] = content
    return files


def _describe(
    repo_map: RepoMap, shown: Sequence[MapFile], excerpts: Sequence[MapFile], notes: Sequence[str], *, may_edit: bool
) -> str:
    listing = repo_map.render([*shown, *excerpts], MAX_MAP_BYTES)
    label = "Other files of this folder" if shown or excerpts else "Files of this folder"
    parts = [f"{label}:\n{listing}"] if listing else [] if shown else ["This folder is empty."]
    long = [file.path for file in shown if len(file.text) > LONG_FILE_BYTES] + [file.path for file in excerpts]
    parts += [SEARCH_FORMAT.format(paths=" and ".join(long))] if long and may_edit else []
    return "\n\n".join([*parts, *notes])


def _notes(prompt: str, repo_map: RepoMap) -> list[str]:
    """Return what the prompt does not say: which of its files are new, and which contain a name to change."""
    notes = [f"{path} does not exist yet." for path in new_paths(prompt, repo_map.paths)]
    if renamed := renamed_symbols(prompt):
        paths = files_with(repo_map.files, renamed[0])
        notes += [f"Files that contain {renamed[0]}: {', '.join(paths[:20])}."] if paths else []
    return notes


def _excerpt(file: MapFile, prompt: str) -> dict[str, object]:
    """Return a call that reads the part of a long file with the most words of the prompt."""
    words = [word.lower() for word in re.findall(r"[A-Za-z_]\w{2,}", prompt)]
    lines = [sum(word in line for word in words) for line in file.text.lower().splitlines()]
    starts = range(0, max(len(lines) - EXCERPT_LINES // 2, 1), 15)
    best = max(starts, key=lambda start: (sum(lines[start : start + EXCERPT_LINES]), -start))
    return {"path": file.path, "line": best + 1, "limit": EXCERPT_LINES}
