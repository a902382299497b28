"""How `ostler sessions` tells what it found, in lines for a terminal or a pipe."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from ostler.drawing.paint import Paint, wants_colour
from ostler.journal.index import END, MARK, Hit, Listed, Spent
from ostler.journal.meta import Meta, moment
from ostler.journal.said import Said
from ostler.text.cut import cut_lines
from ostler.text.sanitise import sanitise

WHO = {"user": "you", "assistant": "ostler", "system": "summary", "tool": "tool"}
OUTPUT_LINES = 12


def listed(found: Sequence[Listed], *, with_folder: bool) -> str:
    """One line each."""
    return "".join(f"{_line(one, with_folder)}\n" for one in found) or "there is no session here yet\n"


def found(hits: Sequence[Hit], out: TextIO) -> str:
    """Two lines each: the session, and where it has the words."""
    paint = Paint(wants_colour(out, os.environ))
    return "".join(
        f"{_line(hit.session, True)}\n    #{hit.number} {_role(hit)}: {_marked(hit, paint)}\n" for hit in hits
    )


def hit_fields(hit: Hit) -> dict[str, Any]:
    """A hit for machines."""
    meta = hit.session.meta
    told = {"session": meta.id, "cwd": meta.cwd, "title": meta.title, "changed": meta.changed}
    snippet = hit.snippet.replace(MARK, "").replace(END, "")
    return {**told, "number": hit.number, "role": hit.role, "time": moment(hit.time), "snippet": snippet}


def shown(meta: Meta, said: Iterable[Said], *, full: bool) -> str:
    """The conversation with the number of every message."""
    from ostler.journal.export_markdown import facts

    head = [sanitise(meta.title) or meta.id, *(f"  {name}: {sanitise(value)}" for name, value in facts(meta))]
    return "\n".join([*head, *(line for message in said for line in _message(message, full))]) + "\n"


def stats(sessions: Sequence[Listed], spent: Sequence[Spent], limit: int) -> str:
    """What was used, by model and by day."""
    turns, size = sum(one.meta.turns for one in sessions), sum(one.size for one in sessions)
    lines = [f"{len(sessions)} sessions, {turns} turns, {size / 1e6:.1f} MB on disk"]
    lines += _sums("model", {one.model: [other for other in spent if other.model == one.model] for one in spent})
    days = {one.day: [other for other in spent if other.day == one.day] for one in spent}
    return "\n".join([*lines, *_sums("day", dict(sorted(days.items(), reverse=True)[:limit]))]) + "\n"


def _sums(what: str, groups: dict[str, list[Spent]]) -> Iterator[str]:
    if groups:
        yield f"\n{what:<28} {'calls':>8} {'in':>12} {'out':>10} {'cached':>12} {'cost':>10}"
    for name, items in groups.items():
        sums = [sum(getattr(one, field) for one in items) for field in ("calls", "tokens_in", "tokens_out")]
        cached, cost = sum(one.tokens_cached for one in items), sum(one.cost for one in items)
        known = "unknown" if all(one.unpriced == one.calls for one in items) else f"${cost:.4f}"
        more = "+" if known != "unknown" and any(one.unpriced for one in items) else ""
        yield f"{sanitise(name)[:28]:<28} {sums[0]:>8} {sums[1]:>12} {sums[2]:>10} {cached:>12} {known + more:>10}"


def _line(one: Listed, with_folder: bool) -> str:
    meta = one.meta
    turns = "1 turn " if meta.turns == 1 else f"{meta.turns} turns"
    folder = f"  {sanitise(meta.cwd)}" if with_folder else ""
    when = meta.changed[:16].replace("T", " ")
    return f"{meta.id}  {when}  {turns:>9}  {' '.join(sanitise(meta.title).split())}{folder}"


def _role(hit: Hit) -> str:
    return WHO.get(hit.role, hit.role)


def _marked(hit: Hit, paint: Paint) -> str:
    pieces = [piece.split(END, 1) for piece in hit.snippet.split(MARK)]
    marked = (paint(sanitise(piece[0]), "bold") + sanitise(piece[1]) for piece in pieces[1:] if len(piece) == 2)
    return " ".join((sanitise(pieces[0][0]) + "".join(marked)).split())


def _message(message: Said, full: bool) -> Iterator[str]:
    from ostler.journal.export_markdown import written

    call = f" {message.call_id} {message.status}" if message.role == "tool" else ""
    yield f"\n#{message.number} {WHO[message.role]}{sanitise(call)}  {moment(message.time)}"
    text = message.text if full or message.role != "tool" else cut_lines(message.text, OUTPUT_LINES).text
    yield from (f"  {line}" for line in sanitise(text).splitlines())
    for image in message.images:
        yield f"  (image {sanitise(image.name)} {sanitise(image.mime)})"
    for made in message.calls:
        arguments = " ".join(written(made).split())
        yield f"  ⏺ {sanitise(made.tool)} {sanitise(arguments if full else arguments[:140])}  [{sanitise(made.id)}]"
