"""`/undo`, `/redo`, `/revert`: the conversation and the files go back together, and forth again."""

from collections.abc import Sequence

from ostler.commands.outcomes import Told, told
from ostler.commands.services import Services
from ostler.commands.timeline import Timeline
from ostler.text.sanitise import sanitise
from ostler.text.width import clip
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.seams import Session
from ostler.vocabulary.sessions import Revert

WIDEST = 70
RUNNING = "a turn is running; cancel it first (Ctrl-C)"


class GoingBack:
    """Moves one session along its timeline."""

    def __init__(self, session: Session, services: Services, timeline: Timeline) -> None:
        self._session = session
        self._services = services
        self._timeline = timeline

    async def undo(self, rest: str) -> Told:
        """The last prompt; in a session without one, what was last changed in this folder."""
        if not self._timeline.said:
            return Told(tuple(_lines(await self._services.take_back("undo", ()))))
        return await self._back(len(self._timeline.said) - 1)

    async def redo(self, rest: str) -> Told:
        if not self._timeline.gone:
            return Told(tuple(_lines(await self._services.take_back("redo", ()))))
        gone = self._timeline.gone[-1]
        await self._apply(gone.head)
        lines = await self._services.take_back("redo", [self._checkpoint(one.id) for one in gone.said])
        return Told((*(f"  again: {shown(one.text)}" for one in gone.said), *_lines(lines)))

    async def revert(self, rest: str) -> Told:
        """To before the prompt with a number; without one, which there are."""
        if not rest:
            return told(*(self.prompts() or ["  nothing was said yet"]))
        return await self._back(self.place(rest))

    def prompts(self) -> list[str]:
        """What was said, each with its number."""
        return [f"  {number:>3}  {shown(one.text)}" for number, one in enumerate(self._timeline.said, 1)]

    def place(self, number: str) -> int:
        """The index that a number stands for."""
        said = self._timeline.said
        if not (number.isascii() and number.isdecimal() and 1 <= int(number[:9]) <= len(said)):
            raise UsageError(f"there is no prompt {number[:40]!r}", hint="/revert lists them by number")
        return int(number[:9]) - 1

    async def _back(self, place: int) -> Told:
        said = self._timeline.said[place:]
        await self._apply(said[0].before)
        lines = await self._services.take_back("undo", [self._checkpoint(one.id) for one in reversed(said)])
        took = [f"  took back: {shown(one.text)}" for one in said]
        return Told((*took, *_lines(lines), "  /redo does it again"), draft=said[0].text)

    async def _apply(self, to_seq: int) -> None:
        if not await self._session.apply(Revert(to_seq)):
            raise UsageError(RUNNING)

    def _checkpoint(self, turn: str) -> str:
        return f"{self._session.id}/{turn}"


def shown(text: str) -> str:
    """The beginning of what was said, on one line."""
    return clip(" ".join(sanitise(text).split()), WIDEST)


def _lines(lines: Sequence[str]) -> list[str]:
    return [f"  {sanitise(line)}" for line in lines]
