"""Completion: what the word before the cursor may be going to mean, for every face that lets one type."""

import asyncio
import re
from collections.abc import Sequence

import msgspec

from ostler.commands.going_back import shown
from ostler.commands.run import Commands
from ostler.commands.services import Named, Services
from ostler.commands.table import ALIASES, COMMANDS, NAMES, Takes
from ostler.text.sanitise import sanitise
from ostler.vocabulary.errors import OstlerError

PATIENCE_SECONDS = 2.0
LONGEST = 4096
_COMMAND = re.compile(r"\s*/([\w:?.+@-]*)")
_ARGUMENT = re.compile(r"\s*/([\w:?.+@-]+)\s+(.*)", re.DOTALL)
_MENTION = re.compile(r"""(?:(?<=[\s(\[])|^)@(agent:|file:)?(?:"([^"\n]*)|'([^'\n]*)|([^\s"'`<>]*))$""")
_SHELL = re.compile(r"\s*@?!")
_WORD = re.compile(r"\S*$")
_QUOTED = re.compile(r"""[\s"'`<>]""")


class Candidate(msgspec.Struct, frozen=True):
    """Something that may be meant: it takes the place of the last `replaces` characters before the cursor."""

    text: str
    replaces: int
    shown: str
    told: str = ""


class Completing:
    """The candidates of one session; whatever takes too long is left out."""

    def __init__(self, services: Services, commands: Commands, themes: Sequence[str] = ()) -> None:
        self._services = services
        self._commands = commands
        self._themes = themes

    async def candidates(self, before: str, *, asked: bool) -> Sequence[Candidate]:
        """For the text before the cursor; `asked`: by a key, not just while typing."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self._candidates(before[-LONGEST:], asked=asked)
        except (TimeoutError, OstlerError, OSError):
            return ()

    async def _candidates(self, before: str, *, asked: bool) -> Sequence[Candidate]:
        if _SHELL.match(before):
            last = _WORD.search(before)
            return await self._shell_words(last[0] if last else "") if asked else ()
        if command := _COMMAND.fullmatch(before):
            return await self._named(command[1])
        if mention := _MENTION.search(before):
            quoted, word = mention[4] is None, mention[2] or mention[3] or mention[4] or ""
            if mention[1] == "agent:":
                return _prefixed(await self._services.agents(), word)
            return await self._files(word, mention[1] or "", 1 + quoted + len(mention[1] or ""))
        argument = _ARGUMENT.fullmatch(before)
        return await self._arguments(argument[1], argument[2]) if argument else ()

    async def _named(self, begun: str) -> Sequence[Candidate]:
        ours = [Named(name, COMMANDS[ALIASES.get(name, name)].told) for name in NAMES]
        found = _prefixed([*ours, *await self._commands.discovered()], begun)
        return [_spaced(one) if _takes(one.text) else one for one in found]

    async def _arguments(self, name: str, begun: str) -> Sequence[Candidate]:
        entry = COMMANDS.get(ALIASES.get(name, name))
        if entry is None:
            return ()
        if entry.takes == "files":
            return await self._files(begun, "", 0)
        return _prefixed(await self._known(entry.takes), begun)

    async def _known(self, takes: Takes) -> Sequence[Named]:
        """What an argument is chosen from."""
        match takes:
            case "models":
                ours = (*self._services.profiles(), *(Named(one) for one in await self._services.models()))
                return self._commands.choices("model") or ours
            case "agents":
                return await self._services.agents()
            case "modes":
                return self._commands.choices("mode") or await self._services.agents()
            case "thinking" | "profile":
                return self._commands.choices(takes)
            case "sessions":
                return [Named(one.id, one.title or f"{one.turns} turns") for one in await self._services.sessions("")]
            case "turns":
                return [Named(str(n), shown(one.text)) for n, one in enumerate(self._commands.timeline.said, 1)]
            case "commands":
                return [Named(name, entry.told) for name, entry in COMMANDS.items()]
            case _:
                return [Named(theme) for theme in self._themes] if takes == "themes" else ()

    async def _shell_words(self, begun: str) -> Sequence[Candidate]:
        """Paths as a shell takes them."""
        found = await self._services.files(begun)
        return [Candidate(_as_word(path), len(begun), sanitise(path)) for path in found]

    async def _files(self, begun: str, mark: str, marks: int) -> Sequence[Candidate]:
        """Paths; in a mention, with the mark before them, and in quotes where they must be."""
        found = await self._services.files(begun)
        return [
            Candidate(_mentioned(path, mark) if marks else path, len(begun) + marks, sanitise(path))
            for path in found
            if not (marks and '"' in path and "'" in path)  # that no quotes can hold
        ]


def _mentioned(path: str, mark: str) -> str:
    """A folder may be gone on from, so it is not closed."""
    folder = path.endswith("/")
    if not _QUOTED.search(path):
        return f"@{mark}{path}{'' if folder else ' '}"
    quote = "'" if '"' in path else '"'
    return f"@{mark}{quote}{path}" + ("" if folder else f"{quote} ")


def _as_word(path: str) -> str:
    """Quoted where it must be, but for the sign of a home."""
    from shlex import quote

    return f"~/{quote(path[2:])}" if path.startswith("~/") and path[2:] else quote(path)


def _prefixed(things: Sequence[Named], begun: str) -> list[Candidate]:
    fitting = (one for one in things if one.name.startswith(begun))
    return [Candidate(one.name, len(begun), one.name, sanitise(one.told)) for one in fitting]


def _takes(name: str) -> bool:
    entry = COMMANDS.get(ALIASES.get(name, name))
    return entry is None or bool(entry.takes)


def _spaced(one: Candidate) -> Candidate:
    return msgspec.structs.replace(one, text=f"{one.text} ")
