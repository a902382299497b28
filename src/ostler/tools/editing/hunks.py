"""Hunks applied to a text: all of them, or what is wrong with each that cannot be."""

from collections.abc import Sequence

import msgspec

from ostler.tools.editing.lines import BLANKS, Lines, has_returns
from ostler.tools.editing.patches import Hunk, Line
from ostler.tools.editing.placing import Placed, place
from ostler.tools.editing.sheet import Sheet, Unplaced
from ostler.vocabulary.errors import ToolFailure

_TOLD = 5


class Patched(msgspec.Struct, frozen=True):
    """The text afterwards, and what was needed to place the hunks."""

    text: str
    notes: tuple[str, ...]


def patched(path: str, text: str, hunks: Sequence[Hunk]) -> Patched:
    """A text with all hunks applied; a refusal names each hunk that does not fit, and the nearest place."""
    try:  # to diff and git a lone carriage return ends no line, to whoever reads the file it may
        return _patched(path, text, hunks, returns=False)
    except ToolFailure:
        if not has_returns(text):
            raise
        return _patched(path, text, hunks, returns=True)


def _patched(path: str, text: str, hunks: Sequence[Hunk], *, returns: bool) -> Patched:
    lines = Lines(text, returns=returns)
    if not lines.contents[-1]:
        lines.contents.pop()
        lines.ends.pop()
    places, notes = _places(path, Sheet(lines.contents), hunks)
    return Patched(_Writer(lines).written(places), notes)


def _places(path: str, sheet: Sheet, hunks: Sequence[Hunk]) -> tuple[list[Placed], tuple[str, ...]]:
    places: list[Placed] = []
    notes: list[str] = []
    wrong: list[str] = []
    floor = drift = 0
    for number, hunk in enumerate(hunks, 1):
        name = f"hunk {number} of {len(hunks)}" if len(hunks) > 1 else "its hunk"
        try:
            placed = place(hunk, sheet, floor, drift)
        except Unplaced as reason:
            wrong.append(_rejected(f"{path}: {name}{_titled(hunk)}", sheet, hunk, reason))
            continue
        places.append(placed)
        if hunk.old:
            floor = placed.start + placed.size
            told, drift = _drifted(hunk, placed, drift)
            notes += [f"{path}: {name}: {note}" for note in (*told, *placed.notes)]
    if wrong:
        more = f"\n({len(wrong) - _TOLD} more hunks do not fit)" if len(wrong) > _TOLD else ""
        raise ToolFailure("\n".join(wrong[:_TOLD]) + more, code="rejected")
    return places, tuple(notes)


def _titled(hunk: Hunk) -> str:
    return f" ({hunk.title[:80]})" if hunk.title else ""


def _drifted(hunk: Hunk, placed: Placed, drift: int) -> tuple[list[str], int]:
    """What to tell of a hunk that is not where it says, and how far off it is."""
    if not hunk.start:
        return [], drift
    left_out = next((i for i in range(len(hunk.lines)) if hunk.lines[i : i + len(placed.lines)] == placed.lines), 0)
    off = placed.start - left_out - (hunk.start - 1)
    told = [f"found at line {placed.start + 1}, not {hunk.start + left_out}"] if off != drift else []
    return told, off


def _rejected(name: str, sheet: Sheet, hunk: Hunk, reason: Unplaced) -> str:
    if reason.rivals:
        lines = ", ".join(str(at + 1) for at in reason.rivals[:8])
        more = ", …" if len(reason.rivals) > 8 else ""
        return f"{name} does not say which place it means: its lines are at {lines}{more}; give more context"
    said = f"{name} does not fit: {reason.said}"
    if not hunk.old:
        return said
    from ostler.tools.editing.misses import place_told  # only a miss pays for it
    from ostler.tools.editing.nearest import nearest

    wanted = [line.text for line in hunk.old]
    near = nearest(sheet.contents, wanted)
    if near is None:
        return f"{said}, and nothing in it is like them; read it again"
    if list(sheet.contents[near.start : near.start + len(wanted)]) == wanted:
        there = f"its lines are at line {near.start + 1}"
        if hunk.anchors:
            return f"{said}; {there}"
        if not all(line.end for line in hunk.old):
            return f"{said}; {there}, but the hunk says that the file ends with them"
        return f"{name} does not fit: {there}, which an earlier hunk has passed; give hunks in the order of the file"
    return f"{said}; {place_told(sheet.contents, wanted, near, 'the hunk')}"


class _Writer:
    """Puts the lines of a file and of its hunks together, each with the line end it should have."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._out: list[str] = []
        self._ends: list[str] = []
        self._open = bool(lines.ends) and not lines.ends[-1]  # the file ends without a line end
        self._style = next((end for end in lines.ends if end), "")

    def written(self, places: Sequence[Placed]) -> str:
        theirs = (line.end for placed in places for line in placed.lines if line.end)
        self._style = self._style or next(theirs, "\n")
        at = 0
        last: Placed | None = None
        for placed in sorted(places, key=lambda placed: placed.start):
            self._copy(at, placed.start)
            at = self._apply(placed)
            last = placed
        touched = last if last is not None and at == len(self._lines.contents) else None
        self._copy(at, len(self._lines.contents))
        self._close(touched)
        return "".join(piece for pair in zip(self._out, self._ends, strict=True) for piece in pair)

    def _copy(self, start: int, end: int) -> None:
        self._out += self._lines.contents[start:end]
        self._ends += self._lines.ends[start:end]

    def _apply(self, placed: Placed) -> int:
        at = placed.start
        literal = len({line.end for line in placed.lines if line.end}) > 1
        for line in placed.lines:
            if line.sign == "+":
                self._out.append(_shifted(line, placed))
                self._ends.append(line.end if literal and line.end else self._end_near(at))
                continue
            if line.sign == " ":
                self._copy(at, at + 1)
            at += 1
        return at

    def _end_near(self, at: int) -> str:
        """The line end of the file's line before a place, else of the one at it."""
        ends = self._lines.ends
        before = ends[at - 1] if at else ""
        return before or (ends[at] if at < len(ends) else "") or self._style

    def _close(self, touched: Placed | None) -> None:
        """Give every line but the last an end, and the last one the end the file or its hunk wants."""
        self._ends = [end or self._style for end in self._ends[:-1]] + self._ends[-1:]
        if touched is None or not self._ends:
            return
        old = next((line.end == "" for line in reversed(touched.lines) if line.sign != "+"), False)
        new = next((line.end == "" for line in reversed(touched.lines) if line.sign != "-"), False)
        bare = self._open if old == new else new
        self._ends[-1] = "" if bare else self._ends[-1] or self._style


def _shifted(line: Line, placed: Placed) -> str:
    return placed.add + line.text[len(placed.cut) :] if line.text.strip(BLANKS) else line.text
