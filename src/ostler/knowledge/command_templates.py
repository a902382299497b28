"""Expands a command template with its arguments; returns the commands to run and files to read as data."""

import re
from collections.abc import Callable, Sequence

import msgspec

from ostler.knowledge.mentions import find_mentions
from ostler.text.lazy_regex import lazy_regex

MAX_PLACEHOLDERS = 100  # a long argument in many places would use too much memory
_PLACEHOLDER = lazy_regex(r"\$(ARGUMENTS\b|[1-9][0-9]?(?![0-9]))")
_SHELL = lazy_regex(r"!`([^`\n]+)`")
_WORD = lazy_regex(r"""\s*((?:"[^"]*"|'[^']*'|\S)+)""")


class TemplateText(msgspec.Struct, frozen=True, tag="words"):
    """Literal text for the model."""

    text: str


class TemplateShell(msgspec.Struct, frozen=True, tag="shell"):
    """A command whose output replaces this part. The caller runs it through the tool host."""

    command: str


class TemplateFile(msgspec.Struct, frozen=True):
    """A mentioned file. `from_arguments`: the user typed it; otherwise it comes from the template."""

    path: str
    from_arguments: bool = False


class ExpandedCommand(msgspec.Struct, frozen=True):
    """An expanded command: its parts in order, and the files to attach."""

    parts: tuple[TemplateText | TemplateShell, ...]
    files: tuple[TemplateFile, ...] = ()

    @property
    def shell_commands(self) -> tuple[str, ...]:
        """The shell commands to run."""
        return tuple(part.command for part in self.parts if isinstance(part, TemplateShell))

    def render(self, outputs: Sequence[str] = ()) -> str:
        """Return the prompt with the commands replaced by their outputs; a command without output stays as written."""
        remaining = list(outputs)
        return "".join(
            part.text if isinstance(part, TemplateText) else remaining.pop(0) if remaining else f"!`{part.command}`"
            for part in self.parts
        )


def expand_template(template: str, arguments: str) -> ExpandedCommand:
    """Insert arguments into a template.

    `$ARGUMENTS` is replaced by all arguments as typed and `$1` by the first word; the highest number gets all remaining
    words, and missing words are empty. Without placeholders the arguments are appended after a blank line. Only the
    template can contain shell commands, never an argument.
    """
    from shlex import quote  # imported only for commands

    arguments = arguments.strip()
    fill = _make_filler(template, arguments)
    quoted = " ".join(map(quote, split_words(arguments)))
    parts: list[TemplateText | TemplateShell] = []
    end = 0
    for match in _SHELL.finditer(template):
        parts += (
            TemplateText(fill(template[end : match.start()])),
            TemplateShell(_fill_shell(match[1], fill, quoted)),
        )
        end = match.end()
    parts.append(TemplateText(fill(template[end:])))
    if arguments and not _PLACEHOLDER.search(template):
        parts.append(TemplateText(f"\n\n{arguments}"))
    return ExpandedCommand(
        tuple(part for part in parts if part != TemplateText("")), _find_files(template, arguments, fill)
    )


def find_shell_commands(template: str) -> tuple[str, ...]:
    """Return the shell commands of a template, without arguments inserted."""
    return tuple(match[1] for match in _SHELL.finditer(template))


def _make_filler(template: str, arguments: str) -> Callable[[str], str]:
    words = split_words(arguments)
    highest = max((int(match[1]) for match in _PLACEHOLDER.finditer(template) if match[1] != "ARGUMENTS"), default=0)

    budget = iter(range(MAX_PLACEHOLDERS))

    def value(match: "re.Match[str]") -> str:
        if next(budget, None) is None:
            return match[0]
        if match[1] == "ARGUMENTS":
            return arguments
        number = int(match[1])
        return " ".join(words[number - 1 :]) if number == highest else "".join(words[number - 1 : number])

    return lambda text: _PLACEHOLDER.sub(value, text)


def _fill_shell(command: str, fill: Callable[[str], str], all_quoted: str) -> str:
    """Insert arguments into a shell command so that each one is data: quoted, and outside of the template's quotes."""
    from shlex import quote

    parts: list[str] = []
    end = 0
    for match in _PLACEHOLDER.finditer(command):
        before, value = command[: match.start()], fill(match[0])
        if value == match[0]:
            continue
        mark = _open_quote(before)
        if before.endswith(("$", "\\")) and not mark:
            mark = '""' if before.endswith("$") else " "  # otherwise they would change the meaning of the quotes
        word = quote(value) if value or mark else ""
        text = all_quoted if match[1] == "ARGUMENTS" and not mark else word
        parts += (command[end : match.start()], mark, text, mark)
        end = match.end()
    return "".join([*parts, command[end:]])


def _open_quote(text: str) -> str:
    """Return the quotation mark that is open at the end of a shell text, or an empty string."""
    mark, escaped = "", False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\" and mark != "'":
            escaped = True
        elif char in "'\"" and mark in ("", char):
            mark = "" if mark else char
    return mark


def split_words(text: str) -> list[str]:
    """Split a text into words. Quoted text is one word; an unclosed quote is an ordinary character."""
    return [re.sub(r""""([^"]*)"|'([^']*)'""", r"\1\2", match[1]) for match in _WORD.finditer(text)]


def _find_files(template: str, arguments: str, fill: Callable[[str], str]) -> tuple[TemplateFile, ...]:
    without_shell = _SHELL.sub(" ", template)
    files = [TemplateFile(fill(path)) for _, _, path in find_mentions(without_shell)]
    files += [TemplateFile(path, from_arguments=True) for _, _, path in find_mentions(arguments)]
    return tuple(dict.fromkeys(file for file in files if file.path))
