"""Renders a unified diff with changed words highlighted."""

from collections.abc import Iterator, Sequence

from ostler.rendering.style import Styler
from ostler.text.diff import word_diff
from ostler.text.sanitise import escape_invisible

LINE_STYLES = {"+": "added_line", "-": "removed_line", "@": "cyan"}
WORD_STYLES = {"+": "added", "-": "removed"}
MAX_COMPARED_LENGTH = 500
MAX_COMPARED_LINES = 50
MIN_SIMILARITY = 0.4


def render_diff(diff: str, paint: Styler) -> list[str]:
    """Render a sanitised diff without its two file header lines."""
    lines = diff.splitlines()
    if lines[:1] and lines[0].startswith("--- "):
        lines = lines[2:]
    return [row for group in group_changes(lines) for row in _render_group(group, paint)]


def has_crlf(diff: str) -> bool:
    """Return whether all lines of a diff end with CRLF; a last line without a newline is ignored."""
    lines = diff.removesuffix("\n").split("\n")
    content = [
        line for index, line in enumerate(lines) if line[:1] in ("+", "-", " ") and not _lacks_newline(lines, index)
    ]
    content = content[2:] if lines[0].startswith("--- ") else content
    return bool(content) and all(line.endswith("\r") for line in content)


def _lacks_newline(lines: Sequence[str], index: int) -> bool:
    return index + 1 < len(lines) and lines[index + 1].startswith("\\")


def render_diff_for_approval(diff: str, paint: Styler) -> list[str]:
    """Render a diff with invisible characters escaped, except CRs if all lines end with CRLF."""
    return render_diff(escape_invisible(diff.replace("\r\n", "\n") if has_crlf(diff) else diff), paint)


def group_changes(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield groups of lines: removed lines together with the added lines after them, other lines alone."""
    start = 0
    while start < len(lines):
        end = start
        for sign in "-+":
            while end < len(lines) and lines[end].startswith(sign):
                end += 1
        end = max(end, start + 1)
        yield list(lines[start:end])
        start = end


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
    """Render a changed line with the different words highlighted, unless the lines are too different."""
    if max(len(old), len(new)) > MAX_COMPARED_LENGTH:
        return _render_line(old, paint), _render_line(new, paint)
    parts = word_diff(old[1:], new[1:])
    same = sum(len(text) for op, text in parts if op == "same")
    if same < MIN_SIMILARITY * max(len(old), len(new)):
        return _render_line(old, paint), _render_line(new, paint)
    return _render_words("-", parts, paint), _render_words("+", parts, paint)


def _render_words(sign: str, parts: Sequence[tuple[str, str]], paint: Styler) -> str:
    changed = WORD_STYLES[sign]
    words = [(sign, "same"), *((text, op) for op, text in parts if op in ("same", changed))]
    return "".join(paint(text, changed if op == changed else LINE_STYLES[sign]) for text, op in words)
