"""Treats multi-code-point characters as one in the line editor and draws them with a known width.

Terminals disagree on the width of joined emoji, flags and skin tones. The editor therefore draws their parts side by
side, flags as letters, and omits modifiers; the text itself is not changed.
"""

from typing import TYPE_CHECKING

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from wcwidth import iter_graphemes

if TYPE_CHECKING:
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples

MAX_CLUSTER_LENGTH = 100  # code points that are examined to find one character
_MODIFIERS = frozenset(map(chr, (0x200D, 0xFE0E, 0xFE0F, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080))))
_FLAG_LETTERS = {chr(0x1F1E6 + number): chr(ord("A") + number) for number in range(26)}


def size_before(document: "Document") -> int:
    """Return the number of code points of the character before the cursor."""
    text = document.current_line_before_cursor[-MAX_CLUSTER_LENGTH:]
    return 1 if text.isascii() else len([*iter_graphemes(text)][-1])


def size_after(document: "Document") -> int:
    """Return the number of code points of the character at the cursor."""
    text = document.current_line_after_cursor[:MAX_CLUSTER_LENGTH]
    return 1 if text.isascii() else len(next(iter_graphemes(text)))


class GraphemeProcessor(Processor):
    """Draws each line in parts that have the same width in every terminal."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        text = "".join(fragment[1] for fragment in fragments)
        if text.isascii():
            return Transformation(fragments)
        hidden = _hidden_positions(text)
        columns = [0]
        for index in range(len(text)):
            columns.append(columns[-1] + (index not in hidden))
        return Transformation(
            _visible_fragments(fragments, hidden),
            source_to_display=lambda i: columns[i] if i < len(columns) else i - len(text) + columns[-1],
            display_to_source=lambda i: columns.index(i) if i <= columns[-1] else i - columns[-1] + len(text),
        )


def _hidden_positions(text: str) -> set[int]:
    """Return the indexes of modifiers inside multi-code-point characters."""
    hidden: set[int] = set()
    start = 0
    for character in iter_graphemes(text):
        if len(character) > 1:
            hidden.update(start + offset for offset, code in enumerate(character) if offset and code in _MODIFIERS)
        start += len(character)
    return hidden


def _visible_fragments(fragments: "StyleAndTextTuples", hidden: set[int]) -> "StyleAndTextTuples":
    visible: StyleAndTextTuples = []
    start = 0
    for style, text, *rest in fragments:
        codes = (_FLAG_LETTERS.get(code, code) for index, code in enumerate(text, start) if index not in hidden)
        visible.append((style, "".join(codes), *rest))  # type: ignore[arg-type]  # `rest` may be a mouse handler
        start += len(text)
    return visible
