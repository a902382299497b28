"""What is kept of a conversation without asking a model: the user's words, the plan, the files, the last deeds."""

from collections.abc import Iterable, Sequence

from ostler.backends.engine.history import HistoryEntry
from ostler.backends.engine.token_estimate import byte_size
from ostler.core.events import MessageDone, Steered, TurnStarted
from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, PromptContent, TextContent
from ostler.core.protocols import Records
from ostler.core.tools import Todo, ToolCall
from ostler.models.model_types import AssistantMessage, SystemMessage, ToolResultsMessage, UserMessage
from ostler.text.truncate import truncate_middle

HEADING = "[Summary of the conversation so far. Earlier messages are no longer shown; go on from here.]"
TODO_MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
MAX_FILES = 100
_PATH_ARGUMENTS = ("path", "file", "file_path", "filePath", "source", "target", "to")
_MIN_CUT_LENGTH = 80


def user_texts(records: Records, upto_seq: int) -> list[str]:
    """All that people said before a record, in order."""
    kinds = ("turn_started", "steered")
    events = (records[at].event for at in range(records.index_after(upto_seq - 1)) if records.type_at(at) in kinds)
    return [_prompt_text(event.prompt) for event in events if isinstance(event, TurnStarted | Steered)]


def _prompt_text(prompt: Prompt) -> str:
    return "\n".join(filter(None, map(_content_text, prompt.blocks)))


def _content_text(block: PromptContent) -> str:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ImageContent):
        return f"[picture {block.name}]"
    return f"[{block.uri}]\n{block.text}" if isinstance(block, EmbeddedResource) else f"[{block.uri}]"


def fit_to_bytes(texts: Sequence[str], room: int) -> list[str]:
    """The texts in so many bytes: whole if they fit, else the longest are cut, and of too many the oldest go."""
    longest = max(map(len, texts), default=0)
    cut = list(texts)
    while longest > _MIN_CUT_LENGTH and sum(map(byte_size, cut)) > room:
        longest = longest * 9 // 10
        cut = [truncate_middle(text, longest).text for text in texts]
    sizes = list(map(byte_size, cut))
    begin = 1
    while begin < len(cut) and sizes[0] + sum(sizes[begin:]) > room:
        begin += max(1, (len(cut) - begin) // 8)
    return [*cut[:1], *cut[begin:]]


def render_todos(todos: Iterable[Todo]) -> str:
    """A plan as people see it."""
    return "\n".join(f"{TODO_MARKS[todo.status]} {todo.content}" for todo in todos)


def files_in_calls(records: Records, upto_seq: int) -> list[str]:
    """The paths that calls before a record named, the newest last."""
    paths: dict[str, None] = {}
    events = (
        records[at].event for at in range(records.index_after(upto_seq - 1)) if records.type_at(at) == "message_done"
    )
    for call in (call for event in events if isinstance(event, MessageDone) for call in event.message.calls):
        for value in (call.arguments.get(key) for key in _PATH_ARGUMENTS):
            if isinstance(value, str) and value:
                paths.pop(value, None)
                paths[value] = None
    return list(paths)[-MAX_FILES:]


def recent_actions(entries: Sequence[HistoryEntry], room: int) -> str:
    """The last things that were said and done, a line each, for when no model can tell."""
    lines: list[str] = []
    for entry in reversed(entries):
        for line in reversed(_action_lines(entry)):
            room -= byte_size(line) + 1
            if room < 0:
                return "\n".join(reversed(lines))
            lines.append(line)
    return "\n".join(reversed(lines))


def _action_lines(entry: HistoryEntry) -> list[str]:
    said = entry.message
    if isinstance(said, AssistantMessage):
        words = [f"- said: {_one_line(said.message.text, 300)}"] if said.message.text.strip() else []
        return words + [f"- called {_call_line(call)}" for call in said.message.calls]
    if isinstance(said, ToolResultsMessage):
        return [f"  {result.status}: {_one_line(result.for_model, 160)}" for result in said.results]
    return []


def _call_line(call: ToolCall) -> str:
    return _one_line(f"{call.tool} {call.raw or call.arguments}", 160)


def _one_line(text: str, max_length: int) -> str:
    return truncate_middle(" ".join(text[: max_length * 4].split()), max_length).text.replace("\n", " ")


def conversation_text(entries: Sequence[HistoryEntry], room: int) -> str:
    """A conversation as text for a summary, in so many bytes: long parts are cut, and the oldest left out."""
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
