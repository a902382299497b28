"""What the line client needs of a terminal: lines out, once and in order, and what the person does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from ostler.commands.completion import CompletionSource


class LineEntered(msgspec.Struct, frozen=True):
    """Something was typed and sent; while answers are waited for, it may be one of their keys."""

    text: str


class InterruptRequested(msgspec.Struct, frozen=True):
    """Ctrl-C with nothing to clear."""


class ExitRequested(msgspec.Struct, frozen=True):
    """The input is over, or the process is to end; `status` is its exit status."""

    status: int = 0
    reason: Literal["ended", "signal"] = "ended"


class SteerEntered(msgspec.Struct, frozen=True):
    """Something was typed for the turn that runs."""

    text: str


class DetailsToggled(msgspec.Struct, frozen=True):
    """Calls are to be shown in full, or in short again."""


ConsoleEvent = LineEntered | InterruptRequested | ExitRequested | SteerEntered | DetailsToggled


class AnswerMenu(msgspec.Struct, frozen=True):
    """What is waited for: one of the answers, each a key and a label, or without any a line of text."""

    prompt: str
    answers: tuple[tuple[str, str], ...] = ()


IDLE_MENU = AnswerMenu("> ")


class Console(Protocol):
    """One terminal, as the line client uses it."""

    @property
    def reads_while_busy(self) -> bool:
        """Whether input may be read while something runs; a pipe is read only when a line is wanted."""

    @property
    def echoes_input(self) -> bool:
        """Whether what is typed already stands on the screen."""

    @property
    def numbers_menu(self) -> bool:
        """Whether it prints the answers of a menu by itself, with numbers."""

    @property
    def has_status(self) -> bool:
        """Whether `status` is seen; else the reason why nothing comes is printed."""

    @property
    def page_size(self) -> tuple[int, int]:
        """The columns and rows that a screenful has above the prompt; no rows where nothing is to be paged."""

    def show(self, lines: Sequence[str]) -> None:
        """Add lines to the scrollback."""

    def set_status(self, activity: str, summary: str) -> None:
        """What stands below the prompt for now and never enters the scrollback; of what passes, the end counts."""

    def set_menu(self, menu: AnswerMenu | None) -> None:
        """What is waited for from now on; nothing while something runs, though lines may be typed ahead."""

    def restore_draft(self, text: str) -> None:
        """Give text back that was typed and not sent."""

    def set_completion(self, source: "CompletionSource") -> None:
        """Where the candidates for what is being typed come from, if it can show any."""

    def alert(self, message: str) -> None:
        """The person is needed: in a few words, what for."""

    async def edit(self, path: str) -> bool:
        """Let the person edit a file in a program of theirs; False where that cannot be."""

    async def start(self) -> None:
        """Be there for the person, though nothing can be answered yet; what they type is kept."""

    async def read(self) -> ConsoleEvent:
        """The next thing the person does."""

    def inject(self, event: ConsoleEvent) -> None:
        """As if the person had done it."""

    async def aclose(self) -> None:
        """Give the terminal back as it was."""
