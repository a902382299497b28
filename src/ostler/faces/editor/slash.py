"""Slash commands in an editor: those that make sense there, and what they come to in words."""

from ostler.commands.outcomes import Adjust, Changes, EditFile, Enter, Outcome, Quit, Say, Told
from ostler.commands.run import Commands
from ostler.commands.services import Named, Services
from ostler.commands.table import ALIASES, COMMANDS
from ostler.faces.editor.showing import fenced
from ostler.knowledge.triggers import slash
from ostler.vocabulary.seams import Session
from ostler.wire.acp import Command, CommandInput

# The editor has its own ways for these.
ELSEWHERE = frozenset(["new", "resume", "fork", "memory", "details", "theme", "steer", "quit"])


class Slashes:
    """The commands of one session."""

    def __init__(self, commands: Commands, services: Services, session: Session) -> None:
        self._commands = commands
        self._services = services
        self._session = session

    async def listed(self) -> tuple[Command, ...]:
        """What can be typed: the backend's own, those that files define, and ours; the first of a name counts."""
        far = {
            one.name: Command(one.name, one.description or one.name, CommandInput(one.hint) if one.hint else None)
            for one in self._session.info.commands
        }
        theirs = {one.name: Command(one.name, one.told or one.name, CommandInput("")) for one in await self._theirs()}
        ours = {
            name: Command(name, entry.told, CommandInput(entry.hint) if entry.hint else None)
            for name, entry in COMMANDS.items()
            if name not in ELSEWHERE
        }
        return tuple({**ours, **theirs, **far}.values())

    async def run(self, text: str) -> Outcome | None:
        """What a command comes to; nothing for words that are none of ours: a path, or a command of the backend's."""
        name, rest = slash(text)
        far = {one.name for one in self._session.info.commands}
        if not name or name in far or not await self._known(name):
            return None
        return await self._commands.run(name, rest)

    async def _known(self, name: str) -> bool:
        return name in COMMANDS or name in ALIASES or name in {one.name for one in await self._theirs()}

    async def _theirs(self) -> list[Named]:
        return list(await self._services.commands())


def told_in_words(outcome: Outcome) -> str:
    """An outcome that is no prompt, as Markdown."""
    match outcome:
        case Told(lines, draft):
            return "\n\n".join(filter(None, [fenced(lines) if lines else "", draft]))
        case Changes(diff):
            return fenced(diff.split("\n"), "diff")
        case EditFile(path):
            return f"Open it in your editor: {path}"
        case Enter() | Quit() | Adjust():
            return "That is done in the editor itself."
        case Say(_, told):
            return "\n".join(told)
