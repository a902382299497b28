"""Text output of `ostler sessions`."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ostler.journal.conversation import ConversationMessage
from ostler.journal.session_index import HIT_END, HIT_START, IndexedSession, SearchHit, UsageRow
from ostler.journal.session_meta import SessionMeta, format_time
from ostler.rendering.style import Styler, is_colour_enabled
from ostler.text.sanitise import sanitise
from ostler.text.truncate import truncate_lines

if TYPE_CHECKING:
    from ostler.app.server_sessions import ServerSession

ROLE_LABELS = {"user": "you", "assistant": "ostler", "system": "summary", "tool": "tool"}
MAX_OUTPUT_LINES = 12


def format_list(sessions: Sequence[IndexedSession], *, with_folder: bool) -> str:
    """Return a line for each session."""
    lines = [f"{_session_line(session, with_folder)}\n" for session in sessions]
    return "".join(lines) or "no sessions yet\n"


def format_server_list(sessions: "Sequence[ServerSession]") -> str:
    """Return two lines for each session of a server: what it is, and the backend that attaches to it."""
    lines = []
    for each in sessions:
        session = each.session
        turns = f"{session.turns} turn{'s' * (session.turns != 1)}"
        state = {"waiting": "waiting for you", "working": "working"}.get(session.activity, "done")
        parts = (session.updated_at[:16].replace("T", " "), f"{turns:>9}", state, session.title)
        lines += [
            "  ".join(sanitise(part).replace("\n", " ") for part in parts),
            f"    --backend {shlex.quote(sanitise(each.backend))}",  # the server chose the id of the session
        ]
    return "".join(f"{line.rstrip()}\n" for line in lines) or "no sessions yet\n"


def format_hits(hits: Sequence[SearchHit], out: TextIO) -> str:
    """Return two lines for each hit: the session and the matching text."""
    paint = Styler(is_colour_enabled(out, os.environ))
    lines: list[str] = []
    for hit in hits:
        lines.append(_session_line(hit.session, True))
        lines.append(f"    #{hit.number} {ROLE_LABELS.get(hit.role, hit.role)}: {_highlighted_snippet(hit, paint)}")
    return "".join(f"{line}\n" for line in lines)


def hit_fields(hit: SearchHit) -> dict[str, Any]:
    """Return a hit as JSON fields."""
    meta = hit.session.meta
    fields = {"session": meta.id, "cwd": meta.cwd, "title": meta.title, "changed": meta.changed}
    snippet = hit.snippet.replace(HIT_START, "").replace(HIT_END, "")
    return {**fields, "number": hit.number, "role": hit.role, "time": format_time(hit.time), "snippet": snippet}


def format_conversation(meta: SessionMeta, messages: Iterable[ConversationMessage], *, full: bool) -> str:
    """Return the conversation with numbered messages; tool output is shortened unless `full`."""
    from ostler.journal.export_markdown import header_fields

    head = [sanitise(meta.title) or meta.id, *(f"  {name}: {sanitise(value)}" for name, value in header_fields(meta))]
    return "\n".join([*head, *(line for message in messages for line in _message_lines(message, full))]) + "\n"


def format_stats(sessions: Sequence[IndexedSession], usage: Sequence[UsageRow], limit: int) -> str:
    """Return tokens and cost by model and by day."""
    turns, size = sum(session.meta.turns for session in sessions), sum(session.size for session in sessions)
    lines = [f"{len(sessions)} sessions, {turns} turns, {size / 1e6:.1f} MB on disk"]
    models = {row.model: [other for other in usage if other.model == row.model] for row in usage}
    lines += _usage_lines("model", models)
    days = {row.day: [other for other in usage if other.day == row.day] for row in usage}
    return "\n".join([*lines, *_usage_lines("day", dict(sorted(days.items(), reverse=True)[:limit]))]) + "\n"


def _usage_lines(label: str, groups: dict[str, list[UsageRow]]) -> Iterator[str]:
    if groups:
        yield f"\n{label:<28} {'calls':>8} {'in':>12} {'out':>10} {'cached':>12} {'cost':>10}"
    for name, rows in groups.items():
        sums = [sum(getattr(row, field) for row in rows) for field in ("calls", "tokens_in", "tokens_out")]
        cached, cost = sum(row.tokens_cached for row in rows), sum(row.cost for row in rows)
        price = "unknown" if all(row.unpriced == row.calls for row in rows) else f"${cost:.4f}"
        more = "+" if price != "unknown" and any(row.unpriced for row in rows) else ""
        yield f"{sanitise(name)[:28]:<28} {sums[0]:>8} {sums[1]:>12} {sums[2]:>10} {cached:>12} {price + more:>10}"


def _session_line(session: IndexedSession, with_folder: bool) -> str:
    meta = session.meta
    turns = "1 turn " if meta.turns == 1 else f"{meta.turns} turns"
    folder = f"  {sanitise(meta.cwd)}" if with_folder else ""
    when = meta.changed[:16].replace("T", " ")
    return f"{meta.id}  {when}  {turns:>9}  {' '.join(sanitise(meta.title).split())}{folder}"


def _highlighted_snippet(hit: SearchHit, paint: Styler) -> str:
    parts = [part.split(HIT_END, 1) for part in hit.snippet.split(HIT_START)]
    marked = (paint(sanitise(part[0]), "bold") + sanitise(part[1]) for part in parts[1:] if len(part) == 2)
    return " ".join((sanitise(parts[0][0]) + "".join(marked)).split())


def _message_lines(message: ConversationMessage, full: bool) -> Iterator[str]:
    from ostler.journal.export_markdown import arguments_text

    label = f" {message.call_id} {message.status}" if message.role == "tool" else ""
    yield f"\n#{message.number} {ROLE_LABELS[message.role]}{sanitise(label)}  {format_time(message.time)}"
    text = message.text if full or message.role != "tool" else truncate_lines(message.text, MAX_OUTPUT_LINES).text
    yield from (f"  {line}" for line in sanitise(text).splitlines())
    for image in message.images:
        yield f"  (image {sanitise(image.name)} {sanitise(image.mime)})"
    for call in message.calls:
        arguments = " ".join(arguments_text(call).split())
        yield f"  ⏺ {sanitise(call.tool)} {sanitise(arguments if full else arguments[:140])}  [{sanitise(call.id)}]"
