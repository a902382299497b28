"""What is kept of a conversation without asking a model: the user's words, the plan, the files, the last deeds."""

from collections.abc import Iterable, Sequence

from ostler.backends.engine.history import Entry
from ostler.backends.engine.measure import byte_size
from ostler.models.words import ModelSaid, SystemSaid, ToolsSaid, UserSaid
from ostler.text.cut import cut_middle
from ostler.vocabulary.events import MessageDone, Steered, TurnStarted
from ostler.vocabulary.prompt import Block, Image, Prompt, Resource, Text
from ostler.vocabulary.seams import Past
from ostler.vocabulary.tools import Todo, ToolCall

HEADING = "[Summary of the conversation so far. Earlier messages are no longer shown; go on from here.]"
MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
MOST_FILES = 100
_PATHS = ("path", "file", "file_path", "filePath", "source", "target", "to")
_SHORTEST_CUT = 80


def user_words(records: Past, upto_seq: int) -> list[str]:
    """All that people said before a record, in order."""
    kinds = ("turn_started", "steered")
    events = (records[at].event for at in range(records.after(upto_seq - 1)) if records.kind(at) in kinds)
    return [_words(event.prompt) for event in events if isinstance(event, TurnStarted | Steered)]


def _words(prompt: Prompt) -> str:
    return "\n".join(filter(None, map(_block, prompt.blocks)))


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Image):
        return f"[picture {block.name}]"
    return f"[{block.uri}]\n{block.text}" if isinstance(block, Resource) else f"[{block.uri}]"


def fitted(texts: Sequence[str], room: int) -> list[str]:
    """The texts in so many bytes: whole if they fit, else the longest are cut, and of too many the oldest go."""
    longest = max(map(len, texts), default=0)
    cut = list(texts)
    while longest > _SHORTEST_CUT and sum(map(byte_size, cut)) > room:
        longest = longest * 9 // 10
        cut = [cut_middle(text, longest).text for text in texts]
    sizes = list(map(byte_size, cut))
    begin = 1
    while begin < len(cut) and sizes[0] + sum(sizes[begin:]) > room:
        begin += max(1, (len(cut) - begin) // 8)
    return [*cut[:1], *cut[begin:]]


def drawn(todos: Iterable[Todo]) -> str:
    """A plan as people see it."""
    return "\n".join(f"{MARKS[todo.status]} {todo.content}" for todo in todos)


def files_named(records: Past, upto_seq: int) -> list[str]:
    """The paths that calls before a record named, the newest last."""
    paths: dict[str, None] = {}
    events = (records[at].event for at in range(records.after(upto_seq - 1)) if records.kind(at) == "message_done")
    for call in (call for event in events if isinstance(event, MessageDone) for call in event.message.calls):
        for value in (call.arguments.get(key) for key in _PATHS):
            if isinstance(value, str) and value:
                paths.pop(value, None)
                paths[value] = None
    return list(paths)[-MOST_FILES:]


def deeds(entries: Sequence[Entry], room: int) -> str:
    """The last things that were said and done, a line each, for when no model can tell."""
    lines: list[str] = []
    for entry in reversed(entries):
        for line in reversed(_lines(entry)):
            room -= byte_size(line) + 1
            if room < 0:
                return "\n".join(reversed(lines))
            lines.append(line)
    return "\n".join(reversed(lines))


def _lines(entry: Entry) -> list[str]:
    said = entry.said
    if isinstance(said, ModelSaid):
        words = [f"- said: {_line(said.message.text, 300)}"] if said.message.text.strip() else []
        return words + [f"- called {_called(call)}" for call in said.message.calls]
    if isinstance(said, ToolsSaid):
        return [f"  {result.status}: {_line(result.for_model, 160)}" for result in said.results]
    return []


def _called(call: ToolCall) -> str:
    return _line(f"{call.tool} {call.raw or call.arguments}", 160)


def _line(text: str, most: int) -> str:
    return cut_middle(" ".join(text[: most * 4].split()), most).text.replace("\n", " ")


def record(entries: Sequence[Entry], room: int) -> str:
    """A conversation as text for a summary, in so many bytes: long parts are cut, and the oldest left out."""
    share = max(200, room // 16)
    parts: list[str] = []
    for entry in reversed(entries):
        part = cut_middle(_part(entry), share).text
        room -= byte_size(part) + 2
        if room < 0:
            break
        parts.append(part)
    return "\n\n".join(reversed(parts))


def _part(entry: Entry) -> str:
    match entry.said:
        case UserSaid(blocks):
            return "USER: " + "\n".join(filter(None, map(_block, blocks)))
        case SystemSaid(text):
            return f"NOTE: {text}"
        case ModelSaid(message):
            calls = "".join(f"\nCALL {call.tool} {call.raw or call.arguments}" for call in message.calls)
            return f"ASSISTANT: {message.text}{calls}"
        case ToolsSaid(results):
            return "\n".join(f"RESULT ({result.status}): {result.for_model}" for result in results)
