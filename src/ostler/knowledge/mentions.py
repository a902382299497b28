"""Finds `@path` mentions in a text, outside of code."""

import re

from ostler.text.lazy_regex import lazy_regex

_MENTION = lazy_regex(r"""(?:(?<=[\s(\[（［「『【《])|^)@(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'`<>]+))""", re.MULTILINE)
_TRAILING = ".,;:!?)]}…。，、；：！？）］」』】》"


def find_mentions(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and path of each mention, without punctuation after it."""
    found: list[tuple[int, int, str]] = []
    for match in _MENTION.finditer(text):
        quoted = match[1] or match[2]
        path = quoted or match[3].rstrip(_TRAILING)
        if path:
            found.append((match.start(), match.end() if quoted else match.start() + 1 + len(path), path))
    return found


def typed_mentions(text: str, pasted: str = "") -> list[tuple[int, int, str, bool]]:
    """Return the mentions, each with whether the user typed it: outside of code and quotes, and not in `pasted`."""
    own = {path for _, _, path in find_mentions(_strip_quotes(strip_code(text)))}
    own -= {path for _, _, path in find_mentions(pasted)} if pasted else set()
    return [(start, end, path, path in own) for start, end, path in find_mentions(text)]


def _strip_quotes(text: str) -> str:
    """Return Markdown without quoted and indented lines."""
    return "\n".join("" if re.match(r" {0,3}>| {4}|\t", line) else line for line in text.split("\n"))


def strip_code(text: str) -> str:
    """Return Markdown with its fenced blocks and code spans removed."""
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
    """Return the backticks or tildes of a line that opens or closes a fenced block, or an empty string."""
    found = re.match(r" {0,3}(`{3,}|~{3,})", line)
    return found[1] if found else ""


def _strip_code_spans(line: str) -> str:
    """Replace code spans with a space. A span ends at the next run of as many backticks; other runs are text."""
    runs = [match.span() for match in re.finditer("`+", line)]
    partner: dict[int, int] = {}
    latest: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        if length in latest:
            partner[number] = latest[length]
        latest[length] = number
    parts: list[str] = []
    end = number = 0
    while number < len(runs):
        if number in partner:
            parts += (line[end : runs[number][0]], " ")
            number = partner[number]
            end = runs[number][1]
        number += 1
    return "".join(parts) + line[end:]
