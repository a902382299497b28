"""`/undo`, `/redo` and `/revert`: revert or reapply prompts together with their file changes."""

from collections.abc import Sequence

from ostler.core.errors import UsageError
from ostler.core.protocols import Session
from ostler.core.sessions import Revert
from ostler.interaction.results import ShowLines, show_lines
from ostler.interaction.services import CommandServices, Direction
from ostler.interaction.timeline import Timeline
from ostler.text.sanitise import sanitise
from ostler.text.width import clip

MAX_WIDTH = 70
TURN_RUNNING = "a turn is running; cancel it first (Ctrl-C)"


class UndoCommands:
    """Reverts and reapplies the prompts of one session."""

    def __init__(self, session: Session, services: CommandServices, timeline: Timeline) -> None:
        self._session = session
        self._services = services
        self._timeline = timeline

    async def undo(self, rest: str) -> ShowLines:
        """Undo the last prompt; in a session without prompts, its last file change."""
        if not self._timeline.entries:
            return ShowLines(tuple(await self._change_files("undo", ())))
        return await self._revert_to(len(self._timeline.entries) - 1)

    async def redo(self, rest: str) -> ShowLines:
        if not self._timeline.reverted:
            return ShowLines(tuple(await self._change_files("redo", ())))
        reverted = self._timeline.reverted[-1]
        await self._apply_revert(reverted.head_seq)
        lines = await self._change_files("redo", [self._checkpoint_id(entry.id) for entry in reverted.entries])
        redone = (f"  redone: {shorten_prompt(entry.text)}" for entry in reverted.entries)
        return ShowLines((*redone, *lines))

    async def revert(self, rest: str) -> ShowLines:
        """Go back to before the prompt with this number; without a number, list the prompts."""
        if not rest:
            return show_lines(*(self.prompts() or ["  there are no prompts yet"]))
        return await self._revert_to(self.prompt_index(rest))

    def prompts(self) -> list[str]:
        return [
            f"  {number:>3}  {shorten_prompt(entry.text)}" for number, entry in enumerate(self._timeline.entries, 1)
        ]

    def prompt_index(self, number: str) -> int:
        """Return the index of the prompt with this number. Raises `UsageError`."""
        if not (number.isascii() and number.isdecimal() and 1 <= int(number[:9]) <= len(self._timeline.entries)):
            raise UsageError(f"there is no prompt {number[:40]!r}", hint="/revert lists them by number")
        return int(number[:9]) - 1

    async def _revert_to(self, index: int) -> ShowLines:
        entries = self._timeline.entries[index:]
        await self._apply_revert(entries[0].seq_before)
        lines = await self._change_files("undo", [self._checkpoint_id(entry.id) for entry in reversed(entries)])
        undone = [f"  undone: {shorten_prompt(entry.text)}" for entry in entries]
        return ShowLines((*undone, *lines, "  /redo restores it"), draft=entries[0].text)

    async def _change_files(self, direction: Direction, turns: Sequence[str]) -> list[str]:
        lines = await self._services.undo(direction, turns, self._session.id)
        return [f"  {sanitise(line)}" for line in lines]

    async def _apply_revert(self, to_seq: int) -> None:
        if not await self._session.apply(Revert(to_seq)):
            raise UsageError(TURN_RUNNING)

    def _checkpoint_id(self, turn: str) -> str:
        return f"{self._session.id}/{turn}"


def shorten_prompt(text: str) -> str:
    """Return the start of a prompt on one sanitised line."""
    return clip(" ".join(sanitise(text).split()), MAX_WIDTH)
