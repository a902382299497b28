"""What a typed line means: words for the model, a command for the shell, or one for us."""

import re

import msgspec


class PromptInput(msgspec.Struct, frozen=True):
    """To be said to the model."""

    text: str


class ShellInput(msgspec.Struct, frozen=True):
    """`!cmd` or `@!cmd`: to be run without the model."""

    command: str


class SlashInput(msgspec.Struct, frozen=True):
    """`/name rest`."""

    name: str
    rest: str


_SLASH = re.compile(r"/([A-Za-z?][\w:.+@-]*)(?:\s+(.*))?", re.DOTALL)


def parse_input(line: str) -> PromptInput | ShellInput | SlashInput | None:
    """Nothing for an empty line; a path at the beginning is no command, and a slash alone asks for them all."""
    said = line.strip()
    if not said:
        return None
    if said == "/":
        return SlashInput("help", "")
    for mark in ("!", "@!"):
        if said.startswith(mark):
            return ShellInput(said[len(mark) :].strip())
    slash = _SLASH.fullmatch(said)
    return SlashInput(slash[1], (slash[2] or "").strip()) if slash else PromptInput(said)
