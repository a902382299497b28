"""How `ostler sessions` tells what it found, in lines for a terminal or a pipe."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from ostler.journal.conversation import ConversationMessage
from ostler.journal.session_index import HIT_END, HIT_START, IndexedSession, SearchHit, UsageRow
from ostler.journal.session_meta import SessionMeta, format_time
from ostler.rendering.style import Styler, is_colour_enabled
from ostler.text.sanitise import sanitise
from ostler.text.truncate import truncate_lines

ROLE_LABELS = {"user": "you", "assistant": "ostler", "system": "summary", "tool": "tool"}
MAX_OUTPUT_LINES = 12


def format_list(sessions: Sequence[IndexedSession], *, with_folder: bool) -> str:
    """One line each."""
    return "".join(f"{_session_line(one, with_folder)}\n" for one in sessions) or "there is no session here yet\n"


def format_hits(hits: Sequence[SearchHit], out: TextIO) -> str:
    """Two lines each: the session, and where it has the words."""
    paint = Styler(is_colour_enabled(out, os.environ))
    return "".join(
        f"{_session_line(hit.session, True)}\n    #{hit.number} {_role_label(hit)}: {_highlighted_snippet(hit, paint)}\n"
        for hit in hits
    )


def hit_fields(hit: SearchHit) -> dict[str, Any]:
    """A hit for machines."""
    meta = hit.session.meta
    told = {"session": meta.id, "cwd": meta.cwd, "title": meta.title, "changed": meta.changed}
    snippet = hit.snippet.replace(HIT_START, "").replace(HIT_END, "")
    return {**told, "number": hit.number, "role": hit.role, "time": format_time(hit.time), "snippet": snippet}


def format_conversation(meta: SessionMeta, messages: Iterable[ConversationMessage], *, full: bool) -> str:
    """The conversation with the number of every message."""
    from ostler.journal.export_markdown import header_fields

    head = [sanitise(meta.title) or meta.id, *(f"  {name}: {sanitise(value)}" for name, value in header_fields(meta))]
    return "\n".join([*head, *(line for message in messages for line in _message_lines(message, full))]) + "\n"


def format_stats(sessions: Sequence[IndexedSession], usage: Sequence[UsageRow], limit: int) -> str:
    """What was used, by model and by day."""
    turns, size = sum(one.meta.turns for one in sessions), sum(one.size for one in sessions)
    lines = [f"{len(sessions)} sessions, {turns} turns, {size / 1e6:.1f} MB on disk"]
    lines += _usage_lines("model", {one.model: [other for other in usage if other.model == one.model] for one in usage})
    days = {one.day: [other for other in usage if other.day == one.day] for one in usage}
    return "\n".join([*lines, *_usage_lines("day", dict(sorted(days.items(), reverse=True)[:limit]))]) + "\n"


def _usage_lines(label: str, groups: dict[str, list[UsageRow]]) -> Iterator[str]:
    if groups:
        yield f"\n{label:<28} {'calls':>8} {'in':>12} {'out':>10} {'cached':>12} {'cost':>10}"
    for name, items in groups.items():
        sums = [sum(getattr(one, field) for one in items) for field in ("calls", "tokens_in", "tokens_out")]
        cached, cost = sum(one.tokens_cached for one in items), sum(one.cost for one in items)
        known = "unknown" if all(one.unpriced == one.calls for one in items) else f"${cost:.4f}"
        more = "+" if known != "unknown" and any(one.unpriced for one in items) else ""
        yield f"{sanitise(name)[:28]:<28} {sums[0]:>8} {sums[1]:>12} {sums[2]:>10} {cached:>12} {known + more:>10}"


def _session_line(session: IndexedSession, with_folder: bool) -> str:
    meta = session.meta
    turns = "1 turn " if meta.turns == 1 else f"{meta.turns} turns"
    folder = f"  {sanitise(meta.cwd)}" if with_folder else ""
    when = meta.changed[:16].replace("T", " ")
    return f"{meta.id}  {when}  {turns:>9}  {' '.join(sanitise(meta.title).split())}{folder}"


def _role_label(hit: SearchHit) -> str:
    return ROLE_LABELS.get(hit.role, hit.role)


def _highlighted_snippet(hit: SearchHit, paint: Styler) -> str:
    pieces = [piece.split(HIT_END, 1) for piece in hit.snippet.split(HIT_START)]
    marked = (paint(sanitise(piece[0]), "bold") + sanitise(piece[1]) for piece in pieces[1:] if len(piece) == 2)
    return " ".join((sanitise(pieces[0][0]) + "".join(marked)).split())


def _message_lines(message: ConversationMessage, full: bool) -> Iterator[str]:
    from ostler.journal.export_markdown import arguments_text

    call = f" {message.call_id} {message.status}" if message.role == "tool" else ""
    yield f"\n#{message.number} {ROLE_LABELS[message.role]}{sanitise(call)}  {format_time(message.time)}"
    text = message.text if full or message.role != "tool" else truncate_lines(message.text, MAX_OUTPUT_LINES).text
    yield from (f"  {line}" for line in sanitise(text).splitlines())
    for image in message.images:
        yield f"  (image {sanitise(image.name)} {sanitise(image.mime)})"
    for made in message.calls:
        arguments = " ".join(arguments_text(made).split())
        yield f"  ⏺ {sanitise(made.tool)} {sanitise(arguments if full else arguments[:140])}  [{sanitise(made.id)}]"
