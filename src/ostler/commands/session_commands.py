"""`/sessions`, `/resume`, `/fork`, `/export`, `/title`, `/compact`: what becomes of sessions that are kept."""

from ostler.commands.results import ShowLines, SlashCommandResult, SwitchSession, show_lines
from ostler.commands.services import CommandServices
from ostler.commands.timeline import Timeline
from ostler.commands.undo_commands import UndoCommands
from ostler.core.errors import UsageError
from ostler.core.protocols import Session
from ostler.core.sessions import Compact, Rename, SessionSummary
from ostler.text.sanitise import sanitise


class SessionCommands:
    """The commands about this session and its neighbours."""

    def __init__(
        self, session: Session, services: CommandServices, timeline: Timeline, undo_commands: UndoCommands
    ) -> None:
        self._session = session
        self._services = services
        self._timeline = timeline
        self._undo_commands = undo_commands

    async def sessions(self, rest: str) -> ShowLines:
        found = await self._services.sessions(rest)
        lines = [_session_line(one, is_current=one.id == self._session.id) for one in found]
        return show_lines(*(lines or ["  no session has these words" if rest else "  there is no session here yet"]))

    async def resume(self, rest: str) -> SlashCommandResult:
        if rest:
            wanted = await self._services.find_session(rest)
        else:
            others = [one.id for one in await self._services.sessions("") if one.id != self._session.id]
            if not others:
                raise UsageError("there is no other session in this folder yet")
            wanted = others[0]
        return show_lines("  you are in it") if wanted == self._session.id else SwitchSession(wanted)

    async def fork(self, rest: str) -> SlashCommandResult:
        """The whole of it, or what was said before a prompt."""
        at = self._timeline.entries[self._undo_commands.prompt_index(rest)].seq_before if rest else 0
        return SwitchSession(await self._services.fork(self._session.id, at))

    async def export(self, rest: str) -> ShowLines:
        return show_lines(f"  written to {sanitise(await self._services.export(self._session.id, rest))}")

    async def title(self, rest: str) -> ShowLines:
        if not rest:
            return show_lines(f"  {sanitise(self._session.state.title) or 'it has no title yet: /title words'}")
        await self._session.apply(Rename(" ".join(rest.split())))
        return show_lines(f"  from now on: {sanitise(rest)}")

    async def compact(self, rest: str) -> ShowLines:
        done = await self._session.apply(Compact())
        return show_lines("  the history is shorter now" if done else "  there is nothing to make shorter yet")

    async def uncompact(self, rest: str) -> ShowLines:
        done = await self._session.apply(Compact(undo=True))
        return show_lines(
            "  the model is told all of it again" if done else "  no summary stands that could be taken back now"
        )


def _session_line(session: SessionSummary, *, is_current: bool) -> str:
    """One session: which it is, when it was last used, how long it is, what it is about."""
    turns = "1 turn" if session.turns == 1 else f"{session.turns} turns"
    when = session.changed[:16].replace("T", " ")
    return (
        sanitise(f"  {'*' if is_current else ' '} {session.id}  {when}  {turns:>9}  {session.title}")
        .replace("\n", " ")
        .rstrip()
    )
