"""Console protocol: output lines, status, menus and the input events."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from ostler.interaction.answer_menu import AnswerMenu

if TYPE_CHECKING:
    from ostler.interaction.completion import CompletionSource


class LineEntered(msgspec.Struct, frozen=True):
    """The user entered a line; while a menu is open it may be one of its keys. `pasted` may contain parts of it."""

    text: str
    pasted: str = ""


class InterruptRequested(msgspec.Struct, frozen=True):
    """The user pressed Ctrl-C on an empty line."""


class EscapePressed(msgspec.Struct, frozen=True):
    """The user pressed Esc while something is running: go one step back in a dialog, or cancel what is running."""


class WithdrawRequested(msgspec.Struct, frozen=True):
    """The user took back the prompt that was queued last."""


class ExitRequested(msgspec.Struct, frozen=True):
    """The input ended or the process must exit; `status` is the exit status."""

    status: int = 0
    reason: Literal["ended", "signal"] = "ended"


class SteerEntered(msgspec.Struct, frozen=True):
    """The user entered text for the running turn."""

    text: str
    pasted: str = ""


class DetailsToggled(msgspec.Struct, frozen=True):
    """The user switched between full and short tool calls."""


class NextModeRequested(msgspec.Struct, frozen=True):
    """The user switched to the next mode."""


ConsoleEvent = (
    LineEntered
    | InterruptRequested
    | EscapePressed
    | WithdrawRequested
    | ExitRequested
    | SteerEntered
    | DetailsToggled
    | NextModeRequested
)


IDLE_MENU = AnswerMenu("> ")


class Console(Protocol):
    """A terminal, as the line client uses it."""

    @property
    def reads_while_busy(self) -> bool:
        """Whether input may be read while something is running; a pipe is read only when a line is needed."""

    @property
    def echoes_input(self) -> bool:
        """Whether typed lines stay on the screen, so that they need not be printed."""

    @property
    def numbers_menu(self) -> bool:
        """Whether the console prints the answers of a menu itself, with numbers."""

    @property
    def has_status(self) -> bool:
        """Whether `set_status` is visible; otherwise the reason for a wait is printed."""

    @property
    def page_size(self) -> tuple[int, int]:
        """Columns and rows of one page above the prompt; 0 rows if output is not paged."""

    def show(self, lines: Sequence[str]) -> None:
        """Add lines to the scrollback."""

    def set_status(self, activity: str, summary: str) -> None:
        """Set the text below the prompt, which never enters the scrollback. A long `activity` loses its start."""

    def set_menu(self, menu: AnswerMenu | None) -> None:
        """Set what the user can enter now; None while something is running (lines can still be typed ahead)."""

    def restore_draft(self, text: str) -> None:
        """Put text that was typed but not sent back into the editor."""

    def set_completion(self, source: "CompletionSource") -> None:
        """Set the source of completions, for consoles that support them."""

    def alert(self, message: str) -> None:
        """Notify the user that input is needed, with a short message."""

    async def edit(self, path: str) -> bool:
        """Open a file in the user's editor. Return False if that failed."""

    async def start(self) -> None:
        """Show the prompt before the session is ready; typed text is kept."""

    async def read(self) -> ConsoleEvent:
        """Wait for the next input event."""

    def inject(self, event: ConsoleEvent) -> None:
        """Add an event as if it came from the user."""

    async def aclose(self) -> None:
        """Restore the terminal."""
