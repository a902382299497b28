"""Characters of several code points in the editor: moved over and deleted as one, and drawn so that columns are sure.

Terminals disagree on the columns of a joined picture, a flag or a skin tone. So where one is being edited, its parts
stand side by side, flags as their letters, and what only changes a look is left out; what is sent has all of it.
"""

from typing import TYPE_CHECKING

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from wcwidth import iter_graphemes

if TYPE_CHECKING:
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples

MAX_CLUSTER_LENGTH = 100  # code points that are looked at to find one character
_MODIFIERS = frozenset(map(chr, (0x200D, 0xFE0E, 0xFE0F, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080))))
_FLAG_LETTERS = {chr(0x1F1E6 + number): chr(ord("A") + number) for number in range(26)}


def size_before(document: "Document") -> int:
    """The code points of the character before the cursor."""
    text = document.current_line_before_cursor[-MAX_CLUSTER_LENGTH:]
    return 1 if text.isascii() else len([*iter_graphemes(text)][-1])


def size_after(document: "Document") -> int:
    """The code points of the character at the cursor."""
    text = document.current_line_after_cursor[:MAX_CLUSTER_LENGTH]
    return 1 if text.isascii() else len(next(iter_graphemes(text)))


class GraphemeProcessor(Processor):
    """Draws each line in parts whose columns every terminal counts alike."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        text = "".join(fragment[1] for fragment in fragments)
        if text.isascii():
            return Transformation(fragments)
        left_out = _hidden_positions(text)
        places = [0]
        for index in range(len(text)):
            places.append(places[-1] + (index not in left_out))
        return Transformation(
            _visible_fragments(fragments, left_out),
            source_to_display=lambda at: places[at] if at < len(places) else at - len(text) + places[-1],
            display_to_source=lambda at: places.index(at) if at <= places[-1] else at - places[-1] + len(text),
        )


def _hidden_positions(text: str) -> set[int]:
    """Where a code point of a longer character has no place of its own."""
    found: set[int] = set()
    at = 0
    for character in iter_graphemes(text):
        if len(character) > 1:
            found.update(at + offset for offset, code in enumerate(character) if offset and code in _MODIFIERS)
        at += len(character)
    return found


def _visible_fragments(fragments: "StyleAndTextTuples", hidden: set[int]) -> "StyleAndTextTuples":
    drawn: StyleAndTextTuples = []
    at = 0
    for style, text, *more in fragments:
        kept = (_FLAG_LETTERS.get(code, code) for index, code in enumerate(text, at) if index not in hidden)
        drawn.append((style, "".join(kept), *more))  # type: ignore[arg-type]  # a mouse handler stays where it was
        at += len(text)
    return drawn
