"""A session as Markdown: who said what, and what came of each call."""

import json
import re
from collections.abc import Callable, Iterable, Iterator

from ostler.journal.meta import Meta, moment
from ostler.journal.said import Said
from ostler.text.sanitise import sanitise
from ostler.vocabulary.tools import ToolCall

WHO = {"user": "You", "assistant": "Ostler", "system": "Summary"}
_TICKS = re.compile("`+")


def to_markdown(meta: Meta, said: Iterable[Said], clean: Callable[[str], str]) -> Iterator[str]:
    """The page in pieces; `clean` has the last word over what is told."""
    yield f"# {_line(clean(meta.title)) or meta.id}\n\n"
    for name, value in facts(meta):
        yield f"- {name}: {_line(clean(value))}\n"
    names: dict[str, str] = {}
    for message in said:
        names |= {call.id: call.tool for call in message.calls}
        yield from _message(message, names, clean)


def facts(meta: Meta) -> list[tuple[str, str]]:
    """What stands at the top of an export."""
    pairs = [("session", meta.id), ("workspace", meta.cwd), ("model", meta.model), ("agent", meta.agent)]
    pairs += [("from", meta.started), ("to", meta.changed), ("forked from", meta.forked_from)]
    pairs.append(("summary", " ".join(meta.summary.split())))
    return [(name, value) for name, value in pairs if value]


def _message(message: Said, names: dict[str, str], clean: Callable[[str], str]) -> Iterator[str]:
    if message.role == "tool":
        yield f"\n{_line(names.get(message.call_id, 'call'))}: {message.status}\n\n"
        yield fenced(sanitise(clean(message.text)))
        return
    yield f"\n## {WHO[message.role]} · {message.number} · {moment(message.time)}\n\n"
    if message.thought:
        yield "".join(f"> {line}\n" for line in sanitise(clean(message.thought)).splitlines()) + "\n"
    if message.text:
        yield f"{sanitise(clean(message.text)).strip()}\n" + ("\n*(cut off here)*\n" if message.cut else "")
    for image in message.images:
        yield f"\n*(image {_line(image.name)} {_line(image.mime)})*\n"
    for call in message.calls:
        yield f"\n**{_line(call.tool)}**\n\n{fenced(sanitise(clean(written(call))))}"


def written(call: ToolCall) -> str:
    """A call's arguments as text."""
    return json.dumps(call.arguments, ensure_ascii=False, indent=2, default=str) if call.arguments else call.raw


def fenced(text: str) -> str:
    """A block that nothing in the text can end."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}\n"


def _line(text: str) -> str:
    return " ".join(sanitise(text).split())
