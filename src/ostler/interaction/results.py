"""Result types of slash commands: lines to show, or an action that the frontend performs."""

from typing import Literal

import msgspec

from ostler.core.prompt import Prompt


class ShowLines(msgspec.Struct, frozen=True):
    """Show these lines, which are sanitised, and put `draft` into the user's input field."""

    lines: tuple[str, ...]
    draft: str = ""


class ShowDiff(msgspec.Struct, frozen=True):
    """Show a unified diff, which is not sanitised."""

    diff: str


class SwitchSession(msgspec.Struct, frozen=True):
    """Switch to the session with this id, or to a new session if it is empty."""

    session: str = ""


class Quit(msgspec.Struct, frozen=True):
    """Quit the frontend."""


class StartTurn(msgspec.Struct, frozen=True):
    """Start a turn with a prompt; show `notices` to the user."""

    prompt: Prompt
    notices: tuple[str, ...] = ()


class EditFile(msgspec.Struct, frozen=True):
    """Open a file in the user's editor."""

    path: str


class ChangeDisplay(msgspec.Struct, frozen=True):
    """Change a display setting of the frontend."""

    setting: Literal["details", "theme"]
    value: str = ""


SlashCommandResult = ShowLines | ShowDiff | SwitchSession | Quit | StartTurn | EditFile | ChangeDisplay


def show_lines(*lines: str) -> ShowLines:
    return ShowLines(lines)
