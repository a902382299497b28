"""Exports a session as Markdown."""

import json
import re
from collections.abc import Callable, Iterable, Iterator

from ostler.core.tools import ToolCall
from ostler.journal.conversation import ConversationMessage
from ostler.journal.session_meta import SessionMeta, format_time
from ostler.text.sanitise import sanitise

ROLE_NAMES = {"user": "You", "assistant": "Ostler", "system": "Summary"}
_TICKS = re.compile("`+")


def to_markdown(
    meta: SessionMeta, messages: Iterable[ConversationMessage], redact: Callable[[str], str]
) -> Iterator[str]:
    """Yield the document in chunks; `redact` is applied to every text."""
    yield f"# {_one_line(redact(meta.title)) or meta.id}\n\n"
    for name, value in header_fields(meta):
        yield f"- {name}: {_one_line(redact(value))}\n"
    names: dict[str, str] = {}
    for message in messages:
        names |= {call.id: call.tool for call in message.calls}
        yield from _message(message, names, redact)


def header_fields(meta: SessionMeta) -> list[tuple[str, str]]:
    """Return the names and values shown at the top of an export."""
    pairs = [("session", meta.id), ("workspace", meta.cwd), ("model", meta.model), ("agent", meta.agent)]
    pairs += [("from", meta.started), ("to", meta.changed), ("forked from", meta.forked_from)]
    pairs.append(("summary", " ".join(meta.summary.split())))
    return [(name, value) for name, value in pairs if value]


def _message(message: ConversationMessage, names: dict[str, str], redact: Callable[[str], str]) -> Iterator[str]:
    if message.role == "tool":
        yield f"\n{_one_line(names.get(message.call_id, 'call'))}: {message.status}\n\n"
        yield fence_code(sanitise(redact(message.text)))
        return
    name = _one_line(redact(message.who)) or ROLE_NAMES[message.role]
    yield f"\n## {name} · {message.number} · {format_time(message.time)}\n\n"
    if message.thought:
        yield "".join(f"> {line}\n" for line in sanitise(redact(message.thought)).splitlines()) + "\n"
    if message.text:
        yield f"{sanitise(redact(message.text)).strip()}\n" + ("\n*(cut off here)*\n" if message.cut else "")
    for image in message.images:
        yield f"\n*(image {_one_line(image.name)} {_one_line(image.mime)})*\n"
    for call in message.calls:
        yield f"\n**{_one_line(call.tool)}**\n\n{fence_code(sanitise(redact(arguments_text(call))))}"


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as JSON, or as the model sent them if they could not be parsed."""
    return json.dumps(call.arguments, ensure_ascii=False, indent=2, default=str) if call.arguments else call.raw


def fence_code(text: str) -> str:
    """Return a code block whose fence is longer than any in the text."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}\n"


def _one_line(text: str) -> str:
    return " ".join(sanitise(text).split())
