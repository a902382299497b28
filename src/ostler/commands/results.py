"""What a slash command comes to: lines to show, or something only the face can do."""

from typing import Literal

import msgspec

from ostler.core.prompt import Prompt


class ShowLines(msgspec.Struct, frozen=True):
    """Lines to show, harmless to any terminal; `draft` is text that goes back to where the person types."""

    lines: tuple[str, ...]
    draft: str = ""


class ShowDiff(msgspec.Struct, frozen=True):
    """A unified diff to show, as it came."""

    diff: str


class SwitchSession(msgspec.Struct, frozen=True):
    """Leave this session for another: one that was kept, or without an id a new one."""

    session: str = ""


class Quit(msgspec.Struct, frozen=True):
    """Leave altogether."""


class StartTurn(msgspec.Struct, frozen=True):
    """Begin a turn with this; `told` is for the person."""

    prompt: Prompt
    notices: tuple[str, ...] = ()


class EditFile(msgspec.Struct, frozen=True):
    """Let the person edit a file in a program of theirs."""

    path: str


class ChangeDisplay(msgspec.Struct, frozen=True):
    """Something about how the face looks."""

    setting: Literal["details", "theme"]
    value: str = ""


SlashCommandResult = ShowLines | ShowDiff | SwitchSession | Quit | StartTurn | EditFile | ChangeDisplay


def show_lines(*lines: str) -> ShowLines:
    """Lines as they are."""
    return ShowLines(lines)
