"""`/sessions`, `/resume`, `/fork`, `/export`, `/title`, `/compact`, `/uncompact`, `/take-tools`, and the undo commands.

`/undo`, `/redo` and `/revert` revert or reapply prompts together with their file changes.
"""

from collections.abc import Sequence

from ostler.core.errors import UsageError
from ostler.core.protocols import Session
from ostler.core.sessions import Compact, Rename, Revert, SessionSummary, TakeTools
from ostler.interaction.results import ShowLines, SlashCommandResult, SwitchSession, show_lines
from ostler.interaction.services import CommandServices, Direction
from ostler.interaction.timeline import Timeline
from ostler.text.sanitise import sanitise
from ostler.text.width import clip

MAX_WIDTH = 70
TURN_RUNNING = "a turn is running; cancel it first (Ctrl-C)"


class SessionCommands:
    """The commands that list, switch, copy, export, name, compact and revert sessions."""

    def __init__(self, session: Session, services: CommandServices, timeline: Timeline) -> None:
        self._session = session
        self._services = services
        self._timeline = timeline

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
        seq = self._timeline.entries[self.prompt_index(rest)].seq_before if rest else 0
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

    # -- undo ----------------------------------------------------------------------------------------------------

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


def _session_line(session: SessionSummary, *, is_current: bool) -> str:
    turns = "1 turn" if session.turns == 1 else f"{session.turns} turns"
    when = session.changed[:16].replace("T", " ")
    return (
        sanitise(f"  {'*' if is_current else ' '} {session.id}  {when}  {turns:>9}  {session.title}")
        .replace("\n", " ")
        .rstrip()
    )


def shorten_prompt(text: str) -> str:
    """Return the start of a prompt on one sanitised line."""
    return clip(" ".join(sanitise(text).split()), MAX_WIDTH)
