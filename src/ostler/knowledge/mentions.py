"""Finds `@path` in a text: at the border of a word, quoted or not, and in Markdown not inside code."""

import re

from ostler.text.lazy_regex import lazy_regex

_MENTION = lazy_regex(r"""(?:(?<=[\s(\[（［「『【《])|^)@(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'`<>]+))""", re.MULTILINE)
_TRAILING = ".,;:!?)]}…。，、；：！？）］」』】》"


def find_mentions(text: str) -> list[tuple[int, int, str]]:
    """Each path with where its mention begins and ends; punctuation after it is not part of it."""
    found: list[tuple[int, int, str]] = []
    for match in _MENTION.finditer(text):
        quoted = match[1] or match[2]
        path = quoted or match[3].rstrip(_TRAILING)
        if path:
            found.append((match.start(), match.end() if quoted else match.start() + 1 + len(path), path))
    return found


def strip_code(text: str) -> str:
    """Markdown with blanks in place of its fenced blocks and code spans."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _fence(line)
        if fence:
            closes = mark.startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
            lines.append("")
        elif mark:
            fence = mark
            lines.append("")
        else:
            lines.append(_strip_code_spans(line))
    return "\n".join(lines)


def _fence(line: str) -> str:
    """The backticks or tildes that open or close a block, if the line begins with some."""
    found = re.match(r" {0,3}(`{3,}|~{3,})", line)
    return found[1] if found else ""


def _strip_code_spans(line: str) -> str:
    """A span ends at the next run of just as many backticks; a run that has no such partner is text."""
    runs = [match.span() for match in re.finditer("`+", line)]
    partner: dict[int, int] = {}
    latest: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        if length in latest:
            partner[number] = latest[length]
        latest[length] = number
    kept: list[str] = []
    at = number = 0
    while number < len(runs):
        if number in partner:
            kept += (line[at : runs[number][0]], " ")
            number = partner[number]
            at = runs[number][1]
        number += 1
    return "".join(kept) + line[at:]
