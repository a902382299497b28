"""A diff as lines: what was added and removed, and in lines that were only changed, the words that were."""

from collections.abc import Iterator, Sequence

from ostler.rendering.style import Styler
from ostler.text.diff import word_diff
from ostler.text.sanitise import escape_invisible

LINE_STYLES = {"+": "green", "-": "red", "@": "cyan"}
WORD_STYLES = {"+": "added", "-": "removed"}
MAX_COMPARED_LENGTH = 500
MAX_COMPARED_LINES = 50
MIN_SIMILARITY = 0.4


def render_diff(diff: str, paint: Styler) -> list[str]:
    """A diff that is harmless to show, without the two lines that name the file."""
    lines = diff.splitlines()
    if lines[:1] and lines[0].startswith("--- "):
        lines = lines[2:]
    return [drawn for run in _group_changes(lines) for drawn in _render_group(run, paint)]


def has_crlf(diff: str) -> bool:
    """Whether every line of a diff ends as files of Windows do; the last one of a file may have no end."""
    lines = diff.removesuffix("\n").split("\n")
    ends = [line for at, line in enumerate(lines) if line[:1] in ("+", "-", " ") and not _lacks_newline(lines, at)]
    ends = ends[2:] if lines[0].startswith("--- ") else ends
    return bool(ends) and all(line.endswith("\r") for line in ends)


def _lacks_newline(lines: Sequence[str], index: int) -> bool:
    return index + 1 < len(lines) and lines[index + 1].startswith("\\")


def render_diff_for_approval(diff: str, paint: Styler) -> list[str]:
    """A diff for someone who must judge it: what cannot be seen is spelled out, but not an end that all lines share."""
    return render_diff(escape_invisible(diff.replace("\r\n", "\n") if has_crlf(diff) else diff), paint)


def _group_changes(lines: Sequence[str]) -> Iterator[list[str]]:
    """Lines one by one, but what was removed together with what was put in its place."""
    at = 0
    while at < len(lines):
        end = at
        for sign in "-+":
            while end < len(lines) and lines[end].startswith(sign):
                end += 1
        end = max(end, at + 1)
        yield list(lines[at:end])
        at = end


def _render_group(group: list[str], paint: Styler) -> list[str]:
    removed = [line for line in group if line.startswith("-")]
    added = [line for line in group if line.startswith("+")]
    if not paint.enabled or len(removed) != len(added) or len(added) > MAX_COMPARED_LINES:
        return [_render_line(line, paint) for line in group]
    pairs = [_render_pair(old, new, paint) for old, new in zip(removed, added, strict=True)]
    return (
        [old for old, _ in pairs] + [new for _, new in pairs]
        if pairs
        else [_render_line(line, paint) for line in group]
    )


def _render_line(line: str, paint: Styler) -> str:
    return paint(line, LINE_STYLES[line[0]]) if line[:1] in LINE_STYLES else line


def _render_pair(old: str, new: str, paint: Styler) -> tuple[str, str]:
    """Two lines with what differs standing out, unless almost all of it does."""
    if max(len(old), len(new)) > MAX_COMPARED_LENGTH:
        return _render_line(old, paint), _render_line(new, paint)
    parts = word_diff(old[1:], new[1:])
    same = sum(len(text) for op, text in parts if op == "same")
    if same < MIN_SIMILARITY * max(len(old), len(new)):
        return _render_line(old, paint), _render_line(new, paint)
    return _render_words("-", parts, paint), _render_words("+", parts, paint)


def _render_words(sign: str, parts: Sequence[tuple[str, str]], paint: Styler) -> str:
    own = WORD_STYLES[sign]
    shown = [(sign, "same"), *((text, op) for op, text in parts if op in ("same", own))]
    return "".join(paint(text, own if op == own else LINE_STYLES[sign]) for text, op in shown)
