"""Translates the indentation of a text to the indentation that a file uses in the same place."""

from collections.abc import Sequence
from itertools import pairwise

from ostler.core.errors import ToolError
from ostler.tools.editing.text_lines import BLANKS

IndentPair = tuple[str, str]  # the indentation of a line in the given text, and in the file


def indent_of(line: str) -> str:
    """Return the blanks at the start of a line."""
    return line[: len(line) - len(line.lstrip(BLANKS))]


def find_indent_pairs(expected: Sequence[str], actual: Sequence[str]) -> tuple[IndentPair, ...] | None:
    """Return how the file writes each indentation of the expected lines, or None if that is not consistent.

    Blank lines are ignored. An indentation that contains another must do so in the file, too.
    """
    lines = [(old, new) for old, new in zip(expected, actual, strict=True) if old.strip(BLANKS)]
    pairs = sorted({(indent_of(old), indent_of(new)) for old, new in lines}, key=lambda pair: len(pair[0]))
    is_consistent = all(
        len(old) < len(next_old) and next_old.startswith(old) and len(new) < len(next_new) and next_new.startswith(new)
        for (old, new), (next_old, next_new) in pairwise(pairs)
    )
    return tuple(pairs) if pairs and is_consistent else None


class IndentTranslator:
    """Translates the indentation of new lines. `given_lines` are all lines of the given texts, old and new."""

    def __init__(self, pairs: Sequence[IndentPair], given_lines: Sequence[str]) -> None:
        self._pairs = pairs
        self._unit = _proven_unit(pairs) or _guessed_unit(pairs, given_lines)

    def translate(self, line: str) -> str:
        """Return a line with the file's indentation. Raises `ToolError` if that is not known."""
        indent = indent_of(line)
        if not self._pairs or indent == line:
            return line
        base = next((pair for pair in reversed(self._pairs) if indent.startswith(pair[0])), None)
        if base is None:
            return self._less_indent(indent, line) + line[len(indent) :]
        return base[1] + self._translate_rest(indent[len(base[0]) :]) + line[len(indent) :]

    def _translate_rest(self, rest: str) -> str:
        old, new = self._unit
        if not old or not rest.startswith(old):
            return rest
        count = (len(rest) - len(rest.removeprefix(old * (len(rest) // len(old))))) // len(old)
        return new * count + rest[len(old) * count :]

    def _less_indent(self, indent: str, line: str) -> str:
        """Return the indentation of a line that is less deep than every line of the match."""
        (first_old, first_new), (old, new) = self._pairs[0], self._unit
        count = (len(first_old) - len(indent)) // len(old) if old else 0
        if count and indent + old * count == first_old and first_new.endswith(new * count):
            return first_new.removesuffix(new * count)
        raise ToolError(
            f"old matches with other indentation, and new cannot be shifted to match: {line.strip()[:80]!r} "
            "is indented too little; give old with the indentation it has in the file",
            code="no_match",
        )


def _proven_unit(pairs: Sequence[IndentPair]) -> IndentPair | None:
    """Return what one level of the text is in the file, from two lines of the match."""
    steps = [(second[0][len(first[0]) :], second[1][len(first[1]) :]) for first, second in pairwise(pairs)]
    return min(steps, key=lambda step: len(step[0]), default=None)


def _guessed_unit(pairs: Sequence[IndentPair], given_lines: Sequence[str]) -> IndentPair:
    """Return what one level is if the file uses tabs where the text uses spaces, or the other way round."""
    file_blanks = "".join(new for _, new in pairs)
    widths = sorted({len(indent_of(line)) for line in given_lines if line.strip(BLANKS)} | {0})
    given_blanks = set("".join(map(indent_of, given_lines)))
    if set(file_blanks) == {"\t"} and given_blanks == {" "}:
        return " " * min((wide - narrow for narrow, wide in pairwise(widths)), default=0), "\t"
    if set(file_blanks) == {" "} and given_blanks == {"\t"}:
        return "\t", min((new for _, new in pairs if new), key=len)
    return "", ""
