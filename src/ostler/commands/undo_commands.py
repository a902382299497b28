"""`/undo`, `/redo`, `/revert`: the conversation and the files go back together, and forth again."""

from collections.abc import Sequence

from ostler.commands.results import ShowLines, show_lines
from ostler.commands.services import CommandServices
from ostler.commands.timeline import Timeline
from ostler.core.errors import UsageError
from ostler.core.protocols import Session
from ostler.core.sessions import Revert
from ostler.text.sanitise import sanitise
from ostler.text.width import clip

MAX_WIDTH = 70
TURN_RUNNING = "a turn is running; cancel it first (Ctrl-C)"


class UndoCommands:
    """Moves one session along its timeline."""

    def __init__(self, session: Session, services: CommandServices, timeline: Timeline) -> None:
        self._session = session
        self._services = services
        self._timeline = timeline

    async def undo(self, rest: str) -> ShowLines:
        """The last prompt; in a session without one, what was last changed in this folder."""
        if not self._timeline.entries:
            return ShowLines(tuple(_format_lines(await self._services.undo("undo", ()))))
        return await self._revert_to(len(self._timeline.entries) - 1)

    async def redo(self, rest: str) -> ShowLines:
        if not self._timeline.reverted:
            return ShowLines(tuple(_format_lines(await self._services.undo("redo", ()))))
        gone = self._timeline.reverted[-1]
        await self._apply_revert(gone.head_seq)
        lines = await self._services.undo("redo", [self._checkpoint_id(one.id) for one in gone.entries])
        return ShowLines((*(f"  again: {shorten_prompt(one.text)}" for one in gone.entries), *_format_lines(lines)))

    async def revert(self, rest: str) -> ShowLines:
        """To before the prompt with a number; without one, which there are."""
        if not rest:
            return show_lines(*(self.prompts() or ["  nothing was said yet"]))
        return await self._revert_to(self.prompt_index(rest))

    def prompts(self) -> list[str]:
        """What was said, each with its number."""
        return [f"  {number:>3}  {shorten_prompt(one.text)}" for number, one in enumerate(self._timeline.entries, 1)]

    def prompt_index(self, number: str) -> int:
        """The index that a number stands for."""
        said = self._timeline.entries
        if not (number.isascii() and number.isdecimal() and 1 <= int(number[:9]) <= len(said)):
            raise UsageError(f"there is no prompt {number[:40]!r}", hint="/revert lists them by number")
        return int(number[:9]) - 1

    async def _revert_to(self, index: int) -> ShowLines:
        said = self._timeline.entries[index:]
        await self._apply_revert(said[0].seq_before)
        lines = await self._services.undo("undo", [self._checkpoint_id(one.id) for one in reversed(said)])
        took = [f"  took back: {shorten_prompt(one.text)}" for one in said]
        return ShowLines((*took, *_format_lines(lines), "  /redo does it again"), draft=said[0].text)

    async def _apply_revert(self, to_seq: int) -> None:
        if not await self._session.apply(Revert(to_seq)):
            raise UsageError(TURN_RUNNING)

    def _checkpoint_id(self, turn: str) -> str:
        return f"{self._session.id}/{turn}"


def shorten_prompt(text: str) -> str:
    """The beginning of what was said, on one line."""
    return clip(" ".join(sanitise(text).split()), MAX_WIDTH)


def _format_lines(lines: Sequence[str]) -> list[str]:
    return [f"  {sanitise(line)}" for line in lines]
