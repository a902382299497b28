"""`/sessions`, `/resume`, `/fork`, `/export`, `/title`, `/compact`, `/uncompact` and `/take-tools`."""

from ostler.core.errors import UsageError
from ostler.core.protocols import Session
from ostler.core.sessions import Compact, Rename, SessionSummary, TakeTools
from ostler.interaction.results import ShowLines, SlashCommandResult, SwitchSession, show_lines
from ostler.interaction.services import CommandServices
from ostler.interaction.timeline import Timeline
from ostler.interaction.undo_commands import UndoCommands
from ostler.text.sanitise import sanitise


class SessionCommands:
    """The commands that list, switch, copy, export, name and compact sessions."""

    def __init__(
        self, session: Session, services: CommandServices, timeline: Timeline, undo_commands: UndoCommands
    ) -> None:
        self._session = session
        self._services = services
        self._timeline = timeline
        self._undo_commands = undo_commands

    async def sessions(self, rest: str) -> ShowLines:
        sessions = await self._services.sessions(rest)
        lines = [_session_line(session, is_current=session.id == self._session.id) for session in sessions]
        return show_lines(
            *(lines or ["  no session matches" if rest else "  there are no sessions in this folder yet"])
        )

    async def resume(self, rest: str) -> SlashCommandResult:
        if rest:
            session_id = await self._services.find_session(rest)
        else:
            others = [summary.id for summary in await self._services.sessions("") if summary.id != self._session.id]
            if not others:
                raise UsageError("there is no other session in this folder yet")
            session_id = others[0]
        if session_id == self._session.id:
            return show_lines("  this session is already open")
        return SwitchSession(session_id)

    async def fork(self, rest: str) -> SlashCommandResult:
        """Copy the complete session, or the part before a prompt."""
        seq = self._timeline.entries[self._undo_commands.prompt_index(rest)].seq_before if rest else 0
        return SwitchSession(await self._services.fork(self._session.id, seq))

    async def export(self, rest: str) -> ShowLines:
        return show_lines(f"  written to {sanitise(await self._services.export(self._session, rest))}")

    async def title(self, rest: str) -> ShowLines:
        if not rest:
            return show_lines(f"  {sanitise(self._session.state.title) or 'no title yet; set one with /title words'}")
        await self._session.apply(Rename(" ".join(rest.split())))
        return show_lines(f"  title set to {sanitise(rest)}")

    async def compact(self, rest: str) -> ShowLines:
        applied = await self._session.apply(Compact())
        return show_lines("  history compacted" if applied else "  nothing to compact yet")

    async def take_tools(self, rest: str) -> ShowLines:
        if not self._session.info.fact("tools"):
            raise UsageError("the tools of this session run on this machine already: it uses no server")
        taken = await self._session.apply(TakeTools())
        return show_lines("  the tools of this session run on this machine" if taken else "  the tools were not moved")

    async def uncompact(self, rest: str) -> ShowLines:
        applied = await self._session.apply(Compact(undo=True))
        return show_lines(
            "  summary undone: the model gets the full conversation again"
            if applied
            else "  there is no summary to undo"
        )


def _session_line(session: SessionSummary, *, is_current: bool) -> str:
    turns = "1 turn" if session.turns == 1 else f"{session.turns} turns"
    when = session.changed[:16].replace("T", " ")
    return (
        sanitise(f"  {'*' if is_current else ' '} {session.id}  {when}  {turns:>9}  {session.title}")
        .replace("\n", " ")
        .rstrip()
    )
