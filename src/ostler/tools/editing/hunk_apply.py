"""Applies hunks to a text, or explains what is wrong with each that does not apply."""

from collections.abc import Sequence

import msgspec

from ostler.core.errors import ToolError
from ostler.tools.editing.hunk_placement import PlacedHunk, place_hunk
from ostler.tools.editing.line_search import HunkNotPlaced, LineSearcher, SearchBudget
from ostler.tools.editing.patch_types import Hunk, PatchLine
from ostler.tools.editing.text_lines import BLANKS, TextLines, has_lone_cr

_MAX_REPORTED = 5
_LOAD_EFFORT = 40  # for each character of a text that is split into lines


class PatchResult(msgspec.Struct, frozen=True):
    """The new text, and notes about hunks that did not match exactly."""

    text: str
    notes: tuple[str, ...]


def apply_hunks(path: str, text: str, hunks: Sequence[Hunk], budget: SearchBudget | None = None) -> PatchResult:
    """Apply all hunks. Raises `ToolError` that names the hunks that do not apply, and the closest match.

    It stops at the first hunk that fits nowhere. `budget` is shared by all files of a patch.
    """
    budget = budget or SearchBudget()
    try:  # for diff and git, a lone CR does not end a line; for other programs it may
        return _apply_hunks(path, text, hunks, budget, cr_is_newline=False)
    except ToolError:
        if not has_lone_cr(text):
            raise
        return _apply_hunks(path, text, hunks, budget, cr_is_newline=True)


def _apply_hunks(
    path: str, text: str, hunks: Sequence[Hunk], budget: SearchBudget, *, cr_is_newline: bool
) -> PatchResult:
    budget.spend(_LOAD_EFFORT * len(text))
    lines = TextLines(text, cr_is_newline=cr_is_newline)
    if not lines.contents[-1]:
        lines.contents.pop()
        lines.ends.pop()
    places, notes = _place_hunks(path, LineSearcher(lines.contents, budget), hunks)
    return PatchResult(_HunkWriter(lines).write(places), notes)


def _place_hunks(path: str, searcher: LineSearcher, hunks: Sequence[Hunk]) -> tuple[list[PlacedHunk], tuple[str, ...]]:
    places: list[PlacedHunk] = []
    notes: list[str] = []
    errors: list[str] = []
    min_index = drift = unchecked = 0
    for number, hunk in enumerate(hunks, 1):
        name = f"hunk {number} of {len(hunks)}" if len(hunks) > 1 else "its hunk"
        try:
            placed = place_hunk(hunk, searcher, min_index, drift)
        except HunkNotPlaced as reason:
            errors.append(_rejection_message(f"{path}: {name}{_title_suffix(hunk)}", searcher, hunk, reason))
            if not reason.candidates:
                unchecked = len(hunks) - number
                break
            continue
        places.append(placed)
        if hunk.old_lines:
            min_index = placed.start + placed.size
            drift_notes, drift = _measure_drift(hunk, placed, drift)
            notes += [f"{path}: {name}: {note}" for note in (*drift_notes, *placed.notes)]
    if errors:
        more = f"\n({len(errors) - _MAX_REPORTED} more hunks do not apply)" if len(errors) > _MAX_REPORTED else ""
        rest = f"\n(hunks after it that were not checked: {unchecked})" if unchecked else ""
        raise ToolError("\n".join(_reported(errors)) + more + rest, code="rejected")
    return places, tuple(notes)


def _reported(errors: list[str]) -> list[str]:
    """Return the first errors, and the last one, which may be about a hunk that fits nowhere."""
    return errors if len(errors) <= _MAX_REPORTED else [*errors[: _MAX_REPORTED - 1], errors[-1]]


def _title_suffix(hunk: Hunk) -> str:
    return f" ({hunk.title[:80]})" if hunk.title else ""


def _measure_drift(hunk: Hunk, placed: PlacedHunk, drift: int) -> tuple[list[str], int]:
    """Return a note if the hunk is not at its stated line, and its distance from it."""
    if not hunk.start:
        return [], drift
    omitted = next((i for i in range(len(hunk.lines)) if hunk.lines[i : i + len(placed.lines)] == placed.lines), 0)
    new_drift = placed.start - omitted - (hunk.start - 1)
    notes = [f"found at line {placed.start + 1}, not {hunk.start + omitted}"] if new_drift != drift else []
    return notes, new_drift


def _rejection_message(name: str, searcher: LineSearcher, hunk: Hunk, reason: HunkNotPlaced) -> str:
    if reason.candidates:
        lines = ", ".join(str(index + 1) for index in reason.candidates[:8])
        more = ", …" if len(reason.candidates) > 8 else ""
        return f"{name} is ambiguous: its lines are at {lines}{more}; give more context"
    message = f"{name} does not apply: {reason.reason}"
    if not hunk.old_lines:
        return message
    from ostler.tools.editing.closest_lines import closest_lines
    from ostler.tools.editing.no_match import closest_place_message  # imported late: only errors need it

    expected = [line.text for line in hunk.old_lines]
    closest = closest_lines(searcher.contents, expected)
    if closest is None:
        return f"{message}, and nothing in it is similar; read it again"
    if list(searcher.contents[closest.start : closest.start + len(expected)]) == expected:
        location = f"its lines are at line {closest.start + 1}"
        if hunk.anchors:
            return f"{message}; {location}"
        if not all(line.end for line in hunk.old_lines):
            return f"{message}; {location}, but the hunk says that the file ends with them"
        return f"{name} does not apply: {location}, before an earlier hunk; give hunks in the order of the file"
    return f"{message}; {closest_place_message(searcher.contents, expected, closest, 'the hunk')}"


class _HunkWriter:
    """Joins the lines of a file and of its hunks, each with the right line ending."""

    def __init__(self, lines: TextLines) -> None:
        self._lines = lines
        self._contents: list[str] = []
        self._ends: list[str] = []
        self._lacks_final_newline = bool(lines.ends) and not lines.ends[-1]
        self._default_newline = next((end for end in lines.ends if end), "")

    def write(self, places: Sequence[PlacedHunk]) -> str:
        hunk_newlines = (line.end for placed in places for line in placed.lines if line.end)
        self._default_newline = self._default_newline or next(hunk_newlines, "\n")
        index = 0
        last: PlacedHunk | None = None
        for placed in sorted(places, key=lambda placed: placed.start):
            self._copy(index, placed.start)
            index = self._apply(placed)
            last = placed
        hunk_at_end = last if last is not None and index == len(self._lines.contents) else None
        self._copy(index, len(self._lines.contents))
        self._fix_last_newline(hunk_at_end)
        return "".join(content + end for content, end in zip(self._contents, self._ends, strict=True))

    def _copy(self, start: int, end: int) -> None:
        self._contents += self._lines.contents[start:end]
        self._ends += self._lines.ends[start:end]

    def _apply(self, placed: PlacedHunk) -> int:
        index = placed.start
        mixed_endings = len({line.end for line in placed.lines if line.end}) > 1
        for line in placed.lines:
            if line.sign == "+":
                self._contents.append(_shift_line(line, placed))
                self._ends.append(line.end if mixed_endings and line.end else self._nearest_newline(index))
                continue
            if line.sign == " ":
                self._copy(index, index + 1)
            index += 1
        return index

    def _nearest_newline(self, index: int) -> str:
        """Return the line ending of the line before an index, else of the line at it."""
        ends = self._lines.ends
        before = ends[index - 1] if index else ""
        return before or (ends[index] if index < len(ends) else "") or self._default_newline

    def _fix_last_newline(self, last_hunk: PlacedHunk | None) -> None:
        """Give every line a line ending, and the last one the ending that the file or its hunk has."""
        self._ends = [end or self._default_newline for end in self._ends[:-1]] + self._ends[-1:]
        if last_hunk is None or not self._ends:
            return
        old_lacks = next((line.end == "" for line in reversed(last_hunk.lines) if line.sign != "+"), False)
        new_lacks = next((line.end == "" for line in reversed(last_hunk.lines) if line.sign != "-"), False)
        lacks_newline = self._lacks_final_newline if old_lacks == new_lacks else new_lacks
        self._ends[-1] = "" if lacks_newline else self._ends[-1] or self._default_newline


def _shift_line(line: PatchLine, placed: PlacedHunk) -> str:
    return placed.added_indent + line.text[len(placed.removed_indent) :] if line.text.strip(BLANKS) else line.text
