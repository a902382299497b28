"""A diff as lines: what was added and removed, and in lines that were only changed, the words that were."""

from collections.abc import Iterator, Sequence

from ostler.drawing.paint import Paint
from ostler.text.diff import words
from ostler.text.sanitise import visible

STYLES = {"+": "green", "-": "red", "@": "cyan"}
STRONG = {"+": "added", "-": "removed"}
LONGEST_COMPARED = 500
MOST_COMPARED = 50
LEAST_ALIKE = 0.4


def diff_lines(diff: str, paint: Paint) -> list[str]:
    """A diff that is harmless to show, without the two lines that name the file."""
    lines = diff.splitlines()
    if lines[:1] and lines[0].startswith("--- "):
        lines = lines[2:]
    return [drawn for run in _runs(lines) for drawn in _drawn(run, paint)]


def has_crlf(diff: str) -> bool:
    """Whether every line of a diff ends as files of Windows do; the last one of a file may have no end."""
    lines = diff.removesuffix("\n").split("\n")
    ends = [line for at, line in enumerate(lines) if line[:1] in ("+", "-", " ") and not _without_end(lines, at)]
    ends = ends[2:] if lines[0].startswith("--- ") else ends
    return bool(ends) and all(line.endswith("\r") for line in ends)


def _without_end(lines: Sequence[str], at: int) -> bool:
    return at + 1 < len(lines) and lines[at + 1].startswith("\\")


def judged_lines(diff: str, paint: Paint) -> list[str]:
    """A diff for someone who must judge it: what cannot be seen is spelled out, but not an end that all lines share."""
    return diff_lines(visible(diff.replace("\r\n", "\n") if has_crlf(diff) else diff), paint)


def _runs(lines: Sequence[str]) -> Iterator[list[str]]:
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


def _drawn(run: list[str], paint: Paint) -> list[str]:
    removed = [line for line in run if line.startswith("-")]
    added = [line for line in run if line.startswith("+")]
    if not paint.on or len(removed) != len(added) or len(added) > MOST_COMPARED:
        return [_plain(line, paint) for line in run]
    pairs = [_pair(old, new, paint) for old, new in zip(removed, added, strict=True)]
    return [old for old, _ in pairs] + [new for _, new in pairs] if pairs else [_plain(line, paint) for line in run]


def _plain(line: str, paint: Paint) -> str:
    return paint(line, STYLES[line[0]]) if line[:1] in STYLES else line


def _pair(old: str, new: str, paint: Paint) -> tuple[str, str]:
    """Two lines with what differs standing out, unless almost all of it does."""
    if max(len(old), len(new)) > LONGEST_COMPARED:
        return _plain(old, paint), _plain(new, paint)
    parts = words(old[1:], new[1:])
    same = sum(len(text) for op, text in parts if op == "same")
    if same < LEAST_ALIKE * max(len(old), len(new)):
        return _plain(old, paint), _plain(new, paint)
    return _marked("-", parts, paint), _marked("+", parts, paint)


def _marked(sign: str, parts: Sequence[tuple[str, str]], paint: Paint) -> str:
    own = STRONG[sign]
    shown = [(sign, "same"), *((text, op) for op, text in parts if op in ("same", own))]
    return "".join(paint(text, own if op == own else STYLES[sign]) for text, op in shown)
