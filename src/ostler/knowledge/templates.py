"""A command's Markdown with arguments put in; what it wants run and read comes out as data, and nothing is done."""

import re
from collections.abc import Callable, Sequence

import msgspec

from ostler.knowledge.mentions import mentions
from ostler.text.regex import regex

MOST_PLACES = 100  # a long argument in very many places would fill the memory
_PLACE = regex(r"\$(ARGUMENTS\b|[1-9][0-9]?(?![0-9]))")
_SHELL = regex(r"!`([^`\n]+)`")
_WORD = regex(r"""\s*((?:"[^"]*"|'[^']*'|\S)+)""")


class Words(msgspec.Struct, frozen=True, tag="words"):
    """Text for the model, as it is."""

    text: str


class Shell(msgspec.Struct, frozen=True, tag="shell"):
    """A command whose output shall stand here; whoever runs it sends it through the door."""

    command: str


class FileWanted(msgspec.Struct, frozen=True):
    """A file that was mentioned. `typed`: by the person in the arguments, not by whoever wrote the command."""

    path: str
    typed: bool = False


class Expanded(msgspec.Struct, frozen=True):
    """What a command amounts to: pieces in order, and the files that come along."""

    pieces: tuple[Words | Shell, ...]
    files: tuple[FileWanted, ...] = ()

    @property
    def shells(self) -> tuple[str, ...]:
        """The commands that it wants run."""
        return tuple(piece.command for piece in self.pieces if isinstance(piece, Shell))

    def text(self, outputs: Sequence[str] = ()) -> str:
        """The prompt, with what each command printed in its place; without outputs, as it is written."""
        left = list(outputs)
        return "".join(
            piece.text if isinstance(piece, Words) else left.pop(0) if left else f"!`{piece.command}`"
            for piece in self.pieces
        )


def expand(template: str, arguments: str) -> Expanded:
    """Put arguments into a template.

    `$ARGUMENTS` is all of them as typed, `$1` the first word, the highest number takes all that is left, and what is
    missing is empty. Without any placeholder they follow after a blank line. Commands and files are those of the
    template: an argument is never read as a command to run.
    """
    arguments = arguments.strip()
    fill = _filler(template, arguments)
    pieces: list[Words | Shell] = []
    at = 0
    for found in _SHELL.finditer(template):
        pieces += (Words(fill(template[at : found.start()])), Shell(fill(found[1])))
        at = found.end()
    pieces.append(Words(fill(template[at:])))
    if arguments and not _PLACE.search(template):
        pieces.append(Words(f"\n\n{arguments}"))
    return Expanded(tuple(piece for piece in pieces if piece != Words("")), _files(template, arguments, fill))


def shells_of(template: str) -> tuple[str, ...]:
    """The commands that a template wants run, as they are written in it."""
    return tuple(found[1] for found in _SHELL.finditer(template))


def _filler(template: str, arguments: str) -> Callable[[str], str]:
    words = split_words(arguments)
    highest = max((int(place[1]) for place in _PLACE.finditer(template) if place[1] != "ARGUMENTS"), default=0)

    left = iter(range(MOST_PLACES))

    def value(found: "re.Match[str]") -> str:
        if next(left, None) is None:
            return found[0]
        if found[1] == "ARGUMENTS":
            return arguments
        number = int(found[1])
        return " ".join(words[number - 1 :]) if number == highest else "".join(words[number - 1 : number])

    return lambda text: _PLACE.sub(value, text)


def split_words(text: str) -> list[str]:
    """The words of a text; what is in quotes is one, and a quote that is never closed is a letter."""
    return [re.sub(r""""([^"]*)"|'([^']*)'""", r"\1\2", found[1]) for found in _WORD.finditer(text)]


def _files(template: str, arguments: str, fill: Callable[[str], str]) -> tuple[FileWanted, ...]:
    outside = _SHELL.sub(" ", template)
    wanted = [FileWanted(fill(path)) for _, _, path in mentions(outside)]
    wanted += [FileWanted(path, typed=True) for _, _, path in mentions(arguments)]
    return tuple(dict.fromkeys(file for file in wanted if file.path))
