"""A command's Markdown with arguments put in; what it wants run and read comes out as data, and nothing is done."""

import re
from collections.abc import Callable, Sequence

import msgspec

from ostler.knowledge.mentions import find_mentions
from ostler.text.lazy_regex import lazy_regex

MAX_PLACEHOLDERS = 100  # a long argument in very many places would fill the memory
_PLACEHOLDER = lazy_regex(r"\$(ARGUMENTS\b|[1-9][0-9]?(?![0-9]))")
_SHELL = lazy_regex(r"!`([^`\n]+)`")
_WORD = lazy_regex(r"""\s*((?:"[^"]*"|'[^']*'|\S)+)""")


class TemplateText(msgspec.Struct, frozen=True, tag="words"):
    """Text for the model, as it is."""

    text: str


class TemplateShell(msgspec.Struct, frozen=True, tag="shell"):
    """A command whose output shall stand here; whoever runs it sends it through the door."""

    command: str


class TemplateFile(msgspec.Struct, frozen=True):
    """A file that was mentioned. `typed`: by the person in the arguments, not by whoever wrote the command."""

    path: str
    from_arguments: bool = False


class ExpandedCommand(msgspec.Struct, frozen=True):
    """What a command amounts to: pieces in order, and the files that come along."""

    parts: tuple[TemplateText | TemplateShell, ...]
    files: tuple[TemplateFile, ...] = ()

    @property
    def shell_commands(self) -> tuple[str, ...]:
        """The commands that it wants run."""
        return tuple(piece.command for piece in self.parts if isinstance(piece, TemplateShell))

    def render(self, outputs: Sequence[str] = ()) -> str:
        """The prompt, with what each command printed in its place; without outputs, as it is written."""
        left = list(outputs)
        return "".join(
            piece.text if isinstance(piece, TemplateText) else left.pop(0) if left else f"!`{piece.command}`"
            for piece in self.parts
        )


def expand_template(template: str, arguments: str) -> ExpandedCommand:
    """Put arguments into a template.

    `$ARGUMENTS` is all of them as typed, `$1` the first word, the highest number takes all that is left, and what is
    missing is empty. Without any placeholder they follow after a blank line. Commands and files are those of the
    template: an argument is never read as a command to run.
    """
    arguments = arguments.strip()
    fill = _make_filler(template, arguments)
    pieces: list[TemplateText | TemplateShell] = []
    at = 0
    for found in _SHELL.finditer(template):
        pieces += (TemplateText(fill(template[at : found.start()])), TemplateShell(fill(found[1])))
        at = found.end()
    pieces.append(TemplateText(fill(template[at:])))
    if arguments and not _PLACEHOLDER.search(template):
        pieces.append(TemplateText(f"\n\n{arguments}"))
    return ExpandedCommand(
        tuple(piece for piece in pieces if piece != TemplateText("")), _find_files(template, arguments, fill)
    )


def find_shell_commands(template: str) -> tuple[str, ...]:
    """The commands that a template wants run, as they are written in it."""
    return tuple(found[1] for found in _SHELL.finditer(template))


def _make_filler(template: str, arguments: str) -> Callable[[str], str]:
    words = split_words(arguments)
    highest = max((int(place[1]) for place in _PLACEHOLDER.finditer(template) if place[1] != "ARGUMENTS"), default=0)

    left = iter(range(MAX_PLACEHOLDERS))

    def value(found: "re.Match[str]") -> str:
        if next(left, None) is None:
            return found[0]
        if found[1] == "ARGUMENTS":
            return arguments
        number = int(found[1])
        return " ".join(words[number - 1 :]) if number == highest else "".join(words[number - 1 : number])

    return lambda text: _PLACEHOLDER.sub(value, text)


def split_words(text: str) -> list[str]:
    """The words of a text; what is in quotes is one, and a quote that is never closed is a letter."""
    return [re.sub(r""""([^"]*)"|'([^']*)'""", r"\1\2", found[1]) for found in _WORD.finditer(text)]


def _find_files(template: str, arguments: str, fill: Callable[[str], str]) -> tuple[TemplateFile, ...]:
    outside = _SHELL.sub(" ", template)
    wanted = [TemplateFile(fill(path)) for _, _, path in find_mentions(outside)]
    wanted += [TemplateFile(path, from_arguments=True) for _, _, path in find_mentions(arguments)]
    return tuple(dict.fromkeys(file for file in wanted if file.path))
