"""Hunks applied to a text: all of them, or what is wrong with each that cannot be."""

from collections.abc import Sequence

import msgspec

from ostler.core.errors import ToolError
from ostler.tools.editing.hunk_placement import PlacedHunk, place_hunk
from ostler.tools.editing.line_search import HunkNotPlaced, LineSearcher
from ostler.tools.editing.patch_types import Hunk, PatchLine
from ostler.tools.editing.text_lines import BLANKS, TextLines, has_lone_cr

_MAX_REPORTED = 5


class PatchResult(msgspec.Struct, frozen=True):
    """The text afterwards, and what was needed to place the hunks."""

    text: str
    notes: tuple[str, ...]


def apply_hunks(path: str, text: str, hunks: Sequence[Hunk]) -> PatchResult:
    """A text with all hunks applied; a refusal names each hunk that does not fit, and the nearest place."""
    try:  # to diff and git a lone carriage return ends no line, to whoever reads the file it may
        return _apply_hunks(path, text, hunks, cr_is_newline=False)
    except ToolError:
        if not has_lone_cr(text):
            raise
        return _apply_hunks(path, text, hunks, cr_is_newline=True)


def _apply_hunks(path: str, text: str, hunks: Sequence[Hunk], *, cr_is_newline: bool) -> PatchResult:
    lines = TextLines(text, cr_is_newline=cr_is_newline)
    if not lines.contents[-1]:
        lines.contents.pop()
        lines.ends.pop()
    places, notes = _place_hunks(path, LineSearcher(lines.contents), hunks)
    return PatchResult(_HunkWriter(lines).write(places), notes)


def _place_hunks(path: str, searcher: LineSearcher, hunks: Sequence[Hunk]) -> tuple[list[PlacedHunk], tuple[str, ...]]:
    places: list[PlacedHunk] = []
    notes: list[str] = []
    wrong: list[str] = []
    floor = drift = 0
    for number, hunk in enumerate(hunks, 1):
        name = f"hunk {number} of {len(hunks)}" if len(hunks) > 1 else "its hunk"
        try:
            placed = place_hunk(hunk, searcher, floor, drift)
        except HunkNotPlaced as reason:
            wrong.append(_rejection_message(f"{path}: {name}{_title_suffix(hunk)}", searcher, hunk, reason))
            continue
        places.append(placed)
        if hunk.old_lines:
            floor = placed.start + placed.size
            told, drift = _measure_drift(hunk, placed, drift)
            notes += [f"{path}: {name}: {note}" for note in (*told, *placed.notes)]
    if wrong:
        more = f"\n({len(wrong) - _MAX_REPORTED} more hunks do not fit)" if len(wrong) > _MAX_REPORTED else ""
        raise ToolError("\n".join(wrong[:_MAX_REPORTED]) + more, code="rejected")
    return places, tuple(notes)


def _title_suffix(hunk: Hunk) -> str:
    return f" ({hunk.title[:80]})" if hunk.title else ""


def _measure_drift(hunk: Hunk, placed: PlacedHunk, drift: int) -> tuple[list[str], int]:
    """What to tell of a hunk that is not where it says, and how far off it is."""
    if not hunk.start:
        return [], drift
    left_out = next((i for i in range(len(hunk.lines)) if hunk.lines[i : i + len(placed.lines)] == placed.lines), 0)
    off = placed.start - left_out - (hunk.start - 1)
    told = [f"found at line {placed.start + 1}, not {hunk.start + left_out}"] if off != drift else []
    return told, off


def _rejection_message(name: str, searcher: LineSearcher, hunk: Hunk, reason: HunkNotPlaced) -> str:
    if reason.candidates:
        lines = ", ".join(str(at + 1) for at in reason.candidates[:8])
        more = ", …" if len(reason.candidates) > 8 else ""
        return f"{name} does not say which place it means: its lines are at {lines}{more}; give more context"
    said = f"{name} does not fit: {reason.reason}"
    if not hunk.old_lines:
        return said
    from ostler.tools.editing.closest_lines import closest_lines
    from ostler.tools.editing.no_match import closest_place_message  # only a miss pays for it

    wanted = [line.text for line in hunk.old_lines]
    near = closest_lines(searcher.contents, wanted)
    if near is None:
        return f"{said}, and nothing in it is like them; read it again"
    if list(searcher.contents[near.start : near.start + len(wanted)]) == wanted:
        there = f"its lines are at line {near.start + 1}"
        if hunk.anchors:
            return f"{said}; {there}"
        if not all(line.end for line in hunk.old_lines):
            return f"{said}; {there}, but the hunk says that the file ends with them"
        return f"{name} does not fit: {there}, which an earlier hunk has passed; give hunks in the order of the file"
    return f"{said}; {closest_place_message(searcher.contents, wanted, near, 'the hunk')}"


class _HunkWriter:
    """Puts the lines of a file and of its hunks together, each with the line end it should have."""

    def __init__(self, lines: TextLines) -> None:
        self._lines = lines
        self._contents: list[str] = []
        self._ends: list[str] = []
        self._lacks_final_newline = bool(lines.ends) and not lines.ends[-1]  # the file ends without a line end
        self._default_newline = next((end for end in lines.ends if end), "")

    def write(self, places: Sequence[PlacedHunk]) -> str:
        theirs = (line.end for placed in places for line in placed.lines if line.end)
        self._default_newline = self._default_newline or next(theirs, "\n")
        at = 0
        last: PlacedHunk | None = None
        for placed in sorted(places, key=lambda placed: placed.start):
            self._copy(at, placed.start)
            at = self._apply(placed)
            last = placed
        touched = last if last is not None and at == len(self._lines.contents) else None
        self._copy(at, len(self._lines.contents))
        self._fix_last_newline(touched)
        return "".join(piece for pair in zip(self._contents, self._ends, strict=True) for piece in pair)

    def _copy(self, start: int, end: int) -> None:
        self._contents += self._lines.contents[start:end]
        self._ends += self._lines.ends[start:end]

    def _apply(self, placed: PlacedHunk) -> int:
        at = placed.start
        literal = len({line.end for line in placed.lines if line.end}) > 1
        for line in placed.lines:
            if line.sign == "+":
                self._contents.append(_shift_line(line, placed))
                self._ends.append(line.end if literal and line.end else self._nearest_newline(at))
                continue
            if line.sign == " ":
                self._copy(at, at + 1)
            at += 1
        return at

    def _nearest_newline(self, index: int) -> str:
        """The line end of the file's line before a place, else of the one at it."""
        ends = self._lines.ends
        before = ends[index - 1] if index else ""
        return before or (ends[index] if index < len(ends) else "") or self._default_newline

    def _fix_last_newline(self, last_hunk: PlacedHunk | None) -> None:
        """Give every line but the last an end, and the last one the end the file or its hunk wants."""
        self._ends = [end or self._default_newline for end in self._ends[:-1]] + self._ends[-1:]
        if last_hunk is None or not self._ends:
            return
        old = next((line.end == "" for line in reversed(last_hunk.lines) if line.sign != "+"), False)
        new = next((line.end == "" for line in reversed(last_hunk.lines) if line.sign != "-"), False)
        bare = self._lacks_final_newline if old == new else new
        self._ends[-1] = "" if bare else self._ends[-1] or self._default_newline


def _shift_line(line: PatchLine, placed: PlacedHunk) -> str:
    return placed.added_indent + line.text[len(placed.removed_indent) :] if line.text.strip(BLANKS) else line.text
