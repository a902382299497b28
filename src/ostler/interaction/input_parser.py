"""Parses a typed line into a prompt, a shell command or a slash command."""

import re

import msgspec


class PromptInput(msgspec.Struct, frozen=True):
    """A prompt for the model."""

    text: str


class ShellInput(msgspec.Struct, frozen=True):
    """A shell command to run without the model: `!cmd` or `@!cmd`."""

    command: str


class SlashInput(msgspec.Struct, frozen=True):
    """A slash command: `/name rest`."""

    name: str
    rest: str


_SLASH = re.compile(r"/([A-Za-z?][\w:.+@-]*)(?:\s+(.*))?", re.DOTALL)


def parse_input(line: str) -> PromptInput | ShellInput | SlashInput | None:
    """Parse a line. Return None if it is empty. A path is not a command, and `/` alone means `/help`."""
    text = line.strip()
    if not text:
        return None
    if text == "/":
        return SlashInput("help", "")
    for mark in ("!", "@!"):
        if text.startswith(mark):
            return ShellInput(text[len(mark) :].strip())
    slash = _SLASH.fullmatch(text)
    return SlashInput(slash[1], (slash[2] or "").strip()) if slash else PromptInput(text)
