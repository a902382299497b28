"""Plugin that carries out the edits that a small model writes in its answer; a failed edit is corrected once."""

import re
from collections.abc import Iterator
from typing import Any

from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.plugins.validation import ValidationChecks, ValidationPlugin
from ostler.backends.engine.text_edits.edit_blocks import EditBlock, find_blocks, fits_language
from ostler.backends.engine.text_edits.first_context import FirstContext, shown_files
from ostler.backends.engine.text_edits.new_content import check_syntax, new_content
from ostler.backends.engine.text_edits.text_editing import TextEditing
from ostler.core.errors import Fault, ToolError
from ostler.core.events import Notice, Reminded, ToolCalled, ToolFinished, TurnEnded
from ostler.core.message import Message
from ostler.core.prompt import Prompt
from ostler.core.tools import ToolCall, ToolResult
from ostler.knowledge.outlines import outline
from ostler.knowledge.repo_map import files_with, is_test_file, new_paths, renamed_symbols
from ostler.text.request_kind import asks_for_change, is_question, reports_fault

MAX_PROBLEMS = 3
MAX_REPAIRS = 1
MAX_CHECK_OUTPUT = 1_500
_PASS_CLAIM = re.compile(r"\b(tests?|checks?|suite)\b[^.\n]{0,40}\b(pass(es|ed|ing)?|succeed(s|ed)?)\b", re.IGNORECASE)


class TextEditsPlugin(LoopPlugin):
    """Runs each edit as a tool call. Problems are shown to the model once; then the turn fails."""

    def __init__(self, context: FirstContext, prompt: str) -> None:
        self._first_context = context
        self._prompt = prompt
        self._corrected = False
        self._applied = 0

    async def before_end(self, view: TurnView, message: Message) -> TurnEnded | bool:
        if not view.has_tool("write"):
            return False
        shown = shown_files(view)
        existing = self._first_context.map.paths
        known = {*shown, *existing, *new_paths(self._prompt, existing)}
        blocks = _without_drafts(self._assign(find_blocks(message.text, known), shown))
        problems, denied, applied = await self._apply(view, blocks, shown)
        self._applied += applied
        if denied:
            return False
        if not blocks and not self._applied and asks_for_change(self._prompt) and (shown or self._names_file()):
            if self._corrected and not self._names_file():
                view.context.emit(Notice("warning", "the answer changes no file"))
                return False
            problems = ["no file was written"]
        problems += self._leftovers(view) if applied and not problems else []
        if not problems:
            return False
        text = "; ".join(dict.fromkeys(problems[:MAX_PROBLEMS]))
        if self._corrected:
            hint = "ask for a smaller change, name the file, or use a larger model"
            return TurnEnded("", "failed", Fault("edit_failed", f"the model's edit could not be used: {text}", hint))
        self._corrected = True
        target = self._target(blocks, shown)
        view.context.emit(
            Reminded(f"That did not work: {text}. Write the complete new content of {target} in a code block.")
        )
        return True

    def _names_file(self) -> bool:
        """Return whether the prompt names a file, so that an answer without an edit is certainly wrong."""
        repo_map = self._first_context.map
        return any(file.is_named for file in repo_map.files) or bool(new_paths(self._prompt, repo_map.paths))

    def _target(self, blocks: list[tuple[str, EditBlock]], shown: dict[str, str]) -> str:
        """Return the file that should have been written."""
        files = self._first_context.map.files
        new = new_paths(self._prompt, self._first_context.map.paths)
        likely = [path for path, _ in blocks] or [*new, *(file.path for file in files if file.is_named)] or [*shown]
        return next((path for path in likely if not is_test_file(path)), "the file")

    def _leftovers(self, view: TurnView) -> list[str]:
        """Return the files that still contain a name that should have been renamed."""
        renamed = renamed_symbols(self._prompt)
        written = _written_files(view)
        paths = files_with(self._first_context.map.files, renamed[0]) if renamed else []
        rest = [path for path in paths if path not in written]
        return [f"{', '.join(rest[:5])} still contains {renamed[0]}; write it too"] if renamed and rest else []

    def _assign(self, blocks: list[EditBlock], shown: dict[str, str]) -> list[tuple[str, EditBlock]]:
        """Return the blocks with their files.

        A block without a path belongs to the only file that it resembles, or to the only new file of the prompt.
        """
        assigned: list[tuple[str, EditBlock]] = []
        new = new_paths(self._prompt, self._first_context.map.paths)
        for block in blocks:
            likely = [
                path for path, text in shown.items() if fits_language(block, path) and _resembles(block, path, text)
            ]
            if block.path:
                assigned.append((block.path, block))
            elif len(likely) == 1 and not is_question(self._prompt):
                assigned.append((likely[0], block))
            elif not likely and len(new) == len(blocks) == 1 and fits_language(block, new[0]):
                assigned.append((new[0], block))
        return assigned

    async def _apply(
        self, view: TurnView, blocks: list[tuple[str, EditBlock]], shown: dict[str, str]
    ) -> tuple[list[str], bool, int]:
        """Run the edits. Return their problems, whether one was denied, and how many were applied."""
        problems: list[str] = []
        unchanged: list[str] = []
        applied = 0
        for path, block in blocks:
            try:
                call = await self._make_call(view, path, block, shown)
            except ToolError as error:
                problems.append(error.fault.message)
                continue
            if call is None:
                unchanged.append(path)
                continue
            result = await self._run(view, *call)
            if result.status in ("denied", "cancelled"):
                return problems, True, applied
            if result.status == "ok":
                applied += 1
                shown.pop(path, None)  # a second edit of the file reads it again
            else:
                problems.append(result.for_model)
        if unchanged and not applied and not problems and not self._applied and asks_for_change(self._prompt):
            problems.append(
                f"{unchanged[0]} is the same as before. Find the line that is wrong and write it differently"
            )
        return problems, False, applied

    async def _make_call(
        self, view: TurnView, path: str, block: EditBlock, shown: dict[str, str]
    ) -> tuple[str, dict[str, object]] | None:
        """Return the tool and arguments for an edit, or None if it changes nothing. Raises `ToolError`."""
        if not block.is_closed:
            raise ToolError(f"the code block of {path} has no end", code="bad_edit")
        if path not in shown:
            result = await self._run(view, "read", {"path": path})
            data = result.data if result.status == "ok" and isinstance(result.data, dict) else {}
            if data.get("truncated") and not block.replaces:
                raise ToolError(f"{path} is too long to be written at once; use SEARCH and REPLACE", code="bad_edit")
            if isinstance(data.get("content"), str) and not data.get("truncated"):
                shown[path] = data["content"]
        old = shown.get(path)
        if old is not None and is_test_file(path) and self._protects_tests(path):
            return None
        if block.replaces:
            return self._replace_call(path, old, block)
        text = new_content(path, None if old is None else f"{old}\n", block.content, self._prompt)
        if old is not None and text.rstrip("\n") == old.rstrip("\n"):
            return None
        return "write", {"path": path, "content": text}

    def _replace_call(self, path: str, old: str | None, block: EditBlock) -> tuple[str, dict[str, object]]:
        if old is not None and all(old.count(replace.old) == 1 for replace in block.replaces):
            new = old
            for replace in block.replaces:
                new = new.replace(replace.old, replace.new, 1)
            if not check_syntax(path, old) and (error := check_syntax(path, new)):
                raise ToolError(f"{path} would not be valid: {error}", code="bad_edit")
        return "edit", {"path": path, "edits": [{"old": item.old, "new": item.new} for item in block.replaces]}

    def _protects_tests(self, path: str) -> bool:
        """Return whether the prompt asks to repair code; tests then stay as they are, unless it names them alone."""
        named = [file.path for file in self._first_context.map.files if file.is_named]
        return reports_fault(self._prompt) and (named != [path] or "fail" in self._prompt.lower())

    async def _run(self, view: TurnView, tool: str, arguments: dict[str, object]) -> ToolResult:
        context = view.context
        call = ToolCall(f"edit-{context.records()[-1].seq + 1}", tool, arguments)
        context.emit(ToolCalled(call, kind="read" if tool == "read" else "edit"))
        return await context.run_tool(call)


def _without_drafts(blocks: list[tuple[str, EditBlock]]) -> list[tuple[str, EditBlock]]:
    """Return the blocks without those that a later block of the same file repeats: models write a draft first."""
    kept: list[tuple[str, EditBlock]] = []
    for index, (path, block) in enumerate(blocks):
        names = set(outline(path, block.content))
        later = [other for other_path, other in blocks[index + 1 :] if other_path == path and not other.replaces]
        if block.replaces or not any(names <= set(outline(path, other.content)) for other in later):
            kept.append((path, block))
    return kept


class PassClaimPlugin(LoopPlugin):
    """Warns if an answer says that tests pass although no command of the turn showed it."""

    async def before_end(self, view: TurnView, message: Message) -> bool:
        if _PASS_CLAIM.search(message.text) and not _has_successful_command(view):
            view.context.emit(Notice("warning", "the answer mentions passing tests, but no command showed that"))
        return False


def _has_successful_command(view: TurnView) -> bool:
    return any(data.get("exit_code") == 0 for data in _successful_data(view))


def _written_files(view: TurnView) -> set[str]:
    return {str(data.get("path")) for data in _successful_data(view) if "operation" in data}


def _successful_data(view: TurnView) -> Iterator[dict[str, Any]]:
    """Yield the data of the turn's successful calls."""
    records = view.context.records()
    for index in range(view.start_index, len(records)):
        event = records[index].event
        if isinstance(event, ToolFinished) and event.result.status == "ok" and isinstance(event.result.data, dict):
            yield event.result.data


def _resembles(block: EditBlock, path: str, text: str) -> bool:
    """Return whether a block looks like a new version of a file: it shares a definition, or most lines."""
    if block.replaces:
        return all(replace.old in text for replace in block.replaces)
    if set(outline(path, block.content)) & set(outline(path, text)):
        return True
    lines = {line.strip() for line in text.splitlines() if line.strip()}
    return sum(line.strip() in lines for line in block.content.splitlines()) * 2 >= max(len(lines), 1)


class TextEditTurn:
    """The files that a turn shows first, and its plugins. A failed edit and a failed check are each corrected once."""

    def __init__(self, editing: TextEditing, checks: ValidationChecks, prompt: Prompt) -> None:
        self._prompt = prompt
        self._first_context = FirstContext(editing)
        self.plugins: tuple[LoopPlugin, ...] = (
            TextEditsPlugin(self._first_context, prompt.text),
            ValidationPlugin(checks, max_rounds=MAX_REPAIRS, max_output=MAX_CHECK_OUTPUT),
            PassClaimPlugin(),
        )

    async def show_files(self, view: TurnView) -> Message | None:
        """Show the files that the prompt is about. Return a message with the calls that read them, or None."""
        return await self._first_context.show(view, self._prompt.id, self._prompt.text)
