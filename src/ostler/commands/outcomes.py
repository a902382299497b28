"""What a slash command comes to: lines to show, or something only the face can do."""

from typing import Literal

import msgspec

from ostler.vocabulary.prompt import Prompt


class Told(msgspec.Struct, frozen=True):
    """Lines to show, harmless to any terminal; `draft` is text that goes back to where the person types."""

    lines: tuple[str, ...]
    draft: str = ""


class Changes(msgspec.Struct, frozen=True):
    """A unified diff to show, as it came."""

    diff: str


class Enter(msgspec.Struct, frozen=True):
    """Leave this session for another: one that was kept, or without an id a new one."""

    session: str = ""


class Quit(msgspec.Struct, frozen=True):
    """Leave altogether."""


class Say(msgspec.Struct, frozen=True):
    """Begin a turn with this; `told` is for the person."""

    prompt: Prompt
    told: tuple[str, ...] = ()


class EditFile(msgspec.Struct, frozen=True):
    """Let the person edit a file in a program of theirs."""

    path: str


class Adjust(msgspec.Struct, frozen=True):
    """Something about how the face looks."""

    what: Literal["details", "theme"]
    value: str = ""


Outcome = Told | Changes | Enter | Quit | Say | EditFile | Adjust


def told(*lines: str) -> Told:
    """Lines as they are."""
    return Told(lines)
