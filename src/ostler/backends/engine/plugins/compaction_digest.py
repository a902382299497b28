"""The parts of a compaction summary that need no model: user messages, plan, files, last actions."""

from collections.abc import Iterable, Sequence

from ostler.backends.engine.history import HistoryEntry
from ostler.backends.engine.token_estimate import byte_size
from ostler.core.events import MessageDone, Steered, TurnStarted
from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, PromptContent, TextContent
from ostler.core.session_view import Records
from ostler.core.tools import Todo, ToolCall
from ostler.models.model_types import AssistantMessage, SystemMessage, ToolResultsMessage, UserMessage
from ostler.text.truncate import truncate_middle

HEADING = "[Summary of the conversation so far. Earlier messages were removed; continue from here.]"
TODO_MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
MAX_FILES = 100
_PATH_ARGUMENTS = ("path", "file", "file_path", "filePath", "source", "target", "to")
_MIN_TRUNCATED_LENGTH = 80


def user_texts(records: Records, upto_seq: int) -> list[str]:
    """Return the user's messages before record `upto_seq`, in order."""
    kinds = ("turn_started", "steered")
    events = (
        records[index].event for index in range(records.index_after(upto_seq - 1)) if records.type_at(index) in kinds
    )
    return [_prompt_text(event.prompt) for event in events if isinstance(event, TurnStarted | Steered)]


def _prompt_text(prompt: Prompt) -> str:
    return "\n".join(filter(None, map(_content_text, prompt.blocks)))


def _content_text(block: PromptContent) -> str:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ImageContent):
        return f"[image {block.name}]"
    return f"[{block.uri}]\n{block.text}" if isinstance(block, EmbeddedResource) else f"[{block.uri}]"


def fit_to_bytes(texts: Sequence[str], room: int) -> list[str]:
    """Fit the texts into `room` bytes: truncate the longest, then drop old ones except the first."""
    longest = max(map(len, texts), default=0)
    shortened = list(texts)
    while longest > _MIN_TRUNCATED_LENGTH and sum(map(byte_size, shortened)) > room:
        longest = longest * 9 // 10
        shortened = [truncate_middle(text, longest).text for text in texts]
    sizes = list(map(byte_size, shortened))
    start = 1
    while start < len(shortened) and sizes[0] + sum(sizes[start:]) > room:
        start += max(1, (len(shortened) - start) // 8)
    return [*shortened[:1], *shortened[start:]]


def render_todos(todos: Iterable[Todo]) -> str:
    """Return the plan as a checklist."""
    return "\n".join(f"{TODO_MARKS[todo.status]} {todo.content}" for todo in todos)


def files_in_calls(records: Records, upto_seq: int) -> list[str]:
    """Return the paths in the arguments of calls before record `upto_seq`, latest last."""
    paths: dict[str, None] = {}
    events = (
        records[index].event
        for index in range(records.index_after(upto_seq - 1))
        if records.type_at(index) == "message_done"
    )
    for call in (call for event in events if isinstance(event, MessageDone) for call in event.message.calls):
        for value in (call.arguments.get(key) for key in _PATH_ARGUMENTS):
            if isinstance(value, str) and value:
                paths.pop(value, None)
                paths[value] = None
    return list(paths)[-MAX_FILES:]


def recent_actions(entries: Sequence[HistoryEntry], room: int) -> str:
    """Return the last replies, calls and results, one per line; used when no model can summarize."""
    lines: list[str] = []
    for entry in reversed(entries):
        for line in reversed(_action_lines(entry)):
            room -= byte_size(line) + 1
            if room < 0:
                return "\n".join(reversed(lines))
            lines.append(line)
    return "\n".join(reversed(lines))


def _action_lines(entry: HistoryEntry) -> list[str]:
    message = entry.message
    if isinstance(message, AssistantMessage):
        text_lines = [f"- said: {_one_line(message.message.text, 300)}"] if message.message.text.strip() else []
        return text_lines + [f"- called {_call_line(call)}" for call in message.message.calls]
    if isinstance(message, ToolResultsMessage):
        return [f"  {result.status}: {_one_line(result.for_model, 160)}" for result in message.results]
    return []


def _call_line(call: ToolCall) -> str:
    return _one_line(f"{call.tool} {call.raw or call.arguments}", 160)


def _one_line(text: str, max_length: int) -> str:
    return truncate_middle(" ".join(text[: max_length * 4].split()), max_length).text.replace("\n", " ")


def conversation_text(entries: Sequence[HistoryEntry], room: int) -> str:
    """Return the conversation as text within `room` bytes: long parts are truncated, the oldest dropped."""
    share = max(200, room // 16)
    parts: list[str] = []
    for entry in reversed(entries):
        part = truncate_middle(_entry_text(entry), share).text
        room -= byte_size(part) + 2
        if room < 0:
            break
        parts.append(part)
    return "\n\n".join(reversed(parts))


def _entry_text(entry: HistoryEntry) -> str:
    match entry.message:
        case UserMessage(blocks):
            return "USER: " + "\n".join(filter(None, map(_content_text, blocks)))
        case SystemMessage(text):
            return f"NOTE: {text}"
        case AssistantMessage(message):
            calls = "".join(f"\nCALL {call.tool} {call.raw or call.arguments}" for call in message.calls)
            return f"ASSISTANT: {message.text}{calls}"
        case ToolResultsMessage(results):
            return "\n".join(f"RESULT ({result.status}): {result.for_model}" for result in results)
