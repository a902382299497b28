"""`/sessions`, `/resume`, `/fork`, `/export`, `/title`, `/compact`: what becomes of sessions that are kept."""

from ostler.commands.going_back import GoingBack
from ostler.commands.outcomes import Enter, Outcome, Told, told
from ostler.commands.services import Services
from ostler.commands.timeline import Timeline
from ostler.text.sanitise import sanitise
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.seams import Session
from ostler.vocabulary.sessions import Compact, Rename, SessionSummary


class Keeping:
    """The commands about this session and its neighbours."""

    def __init__(self, session: Session, services: Services, timeline: Timeline, back: GoingBack) -> None:
        self._session = session
        self._services = services
        self._timeline = timeline
        self._back = back

    async def sessions(self, rest: str) -> Told:
        found = await self._services.sessions(rest)
        lines = [_line(one, here=one.id == self._session.id) for one in found]
        return told(*(lines or ["  no session has these words" if rest else "  there is no session here yet"]))

    async def resume(self, rest: str) -> Outcome:
        if rest:
            wanted = await self._services.find(rest)
        else:
            others = [one.id for one in await self._services.sessions("") if one.id != self._session.id]
            if not others:
                raise UsageError("there is no other session in this folder yet")
            wanted = others[0]
        return told("  you are in it") if wanted == self._session.id else Enter(wanted)

    async def fork(self, rest: str) -> Outcome:
        """The whole of it, or what was said before a prompt."""
        at = self._timeline.said[self._back.place(rest)].before if rest else 0
        return Enter(await self._services.fork(self._session.id, at))

    async def export(self, rest: str) -> Told:
        return told(f"  written to {sanitise(await self._services.export(self._session.id, rest))}")

    async def title(self, rest: str) -> Told:
        if not rest:
            return told(f"  {sanitise(self._session.state.title) or 'it has no title yet: /title words'}")
        await self._session.apply(Rename(" ".join(rest.split())))
        return told(f"  from now on: {sanitise(rest)}")

    async def compact(self, rest: str) -> Told:
        done = await self._session.apply(Compact())
        return told("  the history is shorter now" if done else "  there is nothing to make shorter yet")

    async def uncompact(self, rest: str) -> Told:
        done = await self._session.apply(Compact(undo=True))
        return told(
            "  the model is told all of it again" if done else "  no summary stands that could be taken back now"
        )


def _line(one: SessionSummary, *, here: bool) -> str:
    """One session: which it is, when it was last used, how long it is, what it is about."""
    turns = "1 turn" if one.turns == 1 else f"{one.turns} turns"
    when = one.changed[:16].replace("T", " ")
    return sanitise(f"  {'*' if here else ' '} {one.id}  {when}  {turns:>9}  {one.title}").replace("\n", " ").rstrip()
