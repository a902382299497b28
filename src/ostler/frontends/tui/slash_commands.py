"""The slash commands for menus. Their package is imported when a menu is opened, after the first frame."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostler.interaction.builtin_commands import CommandSpec


def slash_commands() -> "Mapping[str, CommandSpec]":
    """Return the commands by name."""
    from ostler.interaction.builtin_commands import COMMANDS

    return COMMANDS
