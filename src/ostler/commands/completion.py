"""Completion: what the word before the cursor may be going to mean, for every face that lets one type."""

import asyncio
import re
from collections.abc import Sequence

import msgspec

from ostler.commands.builtin_commands import ALIASES, COMMANDS, COMPLETION_NAMES, ArgumentKind
from ostler.commands.dispatcher import CommandDispatcher
from ostler.commands.services import CommandServices, NamedItem
from ostler.commands.undo_commands import shorten_prompt
from ostler.core.errors import OstlerError
from ostler.text.sanitise import sanitise

COMPLETION_TIMEOUT_SECONDS = 2.0
MAX_LENGTH = 4096
_COMMAND = re.compile(r"\s*/([\w:?.+@-]*)")
_ARGUMENT = re.compile(r"\s*/([\w:?.+@-]+)\s+(.*)", re.DOTALL)
_MENTION = re.compile(r"""(?:(?<=[\s(\[])|^)@(agent:|file:)?(?:"([^"\n]*)|'([^'\n]*)|([^\s"'`<>]*))$""")
_SHELL = re.compile(r"\s*@?!")
_WORD = re.compile(r"\S*$")
_NEEDS_QUOTES = re.compile(r"""[\s"'`<>]""")


class Completion(msgspec.Struct, frozen=True):
    """Something that may be meant: it takes the place of the last `replaces` characters before the cursor."""

    text: str
    replace_length: int
    label: str
    description: str = ""


class CompletionSource:
    """The candidates of one session; whatever takes too long is left out."""

    def __init__(self, services: CommandServices, commands: CommandDispatcher, themes: Sequence[str] = ()) -> None:
        self._services = services
        self._commands = commands
        self._themes = themes

    async def completions(self, text: str, *, explicit: bool) -> Sequence[Completion]:
        """For the text before the cursor; `asked`: by a key, not just while typing."""
        try:
            async with asyncio.timeout(COMPLETION_TIMEOUT_SECONDS):
                return await self._completions(text[-MAX_LENGTH:], explicit=explicit)
        except (TimeoutError, OstlerError, OSError):
            return ()

    async def _completions(self, text: str, *, explicit: bool) -> Sequence[Completion]:
        if _SHELL.match(text):
            last = _WORD.search(text)
            return await self._complete_shell_path(last[0] if last else "") if explicit else ()
        if command := _COMMAND.fullmatch(text):
            return await self._complete_command(command[1])
        if mention := _MENTION.search(text):
            quoted, word = mention[4] is None, mention[2] or mention[3] or mention[4] or ""
            if mention[1] == "agent:":
                return _filter_by_prefix(await self._services.agents(), word)
            return await self._complete_path(word, mention[1] or "", 1 + quoted + len(mention[1] or ""))
        argument = _ARGUMENT.fullmatch(text)
        return await self._complete_argument(argument[1], argument[2]) if argument else ()

    async def _complete_command(self, prefix: str) -> Sequence[Completion]:
        ours = [NamedItem(name, COMMANDS[ALIASES.get(name, name)].description) for name in COMPLETION_NAMES]
        found = _filter_by_prefix([*ours, *await self._commands.external_commands()], prefix)
        return [_with_space(one) if _takes_argument(one.text) else one for one in found]

    async def _complete_argument(self, name: str, prefix: str) -> Sequence[Completion]:
        entry = COMMANDS.get(ALIASES.get(name, name))
        if entry is None:
            return ()
        if entry.argument == "files":
            return await self._complete_path(prefix, "", 0)
        return _filter_by_prefix(await self._argument_choices(entry.argument), prefix)

    async def _argument_choices(self, kind: ArgumentKind) -> Sequence[NamedItem]:
        """What an argument is chosen from."""
        match kind:
            case "models":
                ours = (*self._services.profiles(), *(NamedItem(one) for one in await self._services.models()))
                return self._commands.choices("model") or ours
            case "agents":
                return await self._services.agents()
            case "modes":
                return self._commands.choices("mode") or await self._services.agents()
            case "thinking" | "profile":
                return self._commands.choices(kind)
            case "sessions":
                return [
                    NamedItem(one.id, one.title or f"{one.turns} turns") for one in await self._services.sessions("")
                ]
            case "turns":
                return [
                    NamedItem(str(n), shorten_prompt(one.text))
                    for n, one in enumerate(self._commands.timeline.entries, 1)
                ]
            case "commands":
                return [NamedItem(name, entry.description) for name, entry in COMMANDS.items()]
            case _:
                return [NamedItem(theme) for theme in self._themes] if kind == "themes" else ()

    async def _complete_shell_path(self, prefix: str) -> Sequence[Completion]:
        """Paths as a shell takes them."""
        found = await self._services.files(prefix)
        return [Completion(_shell_quote(path), len(prefix), sanitise(path)) for path in found]

    async def _complete_path(self, prefix: str, tag: str, mark_length: int) -> Sequence[Completion]:
        """Paths; in a mention, with the mark before them, and in quotes where they must be."""
        found = await self._services.files(prefix)
        return [
            Completion(_format_mention(path, tag) if mark_length else path, len(prefix) + mark_length, sanitise(path))
            for path in found
            if not (mark_length and '"' in path and "'" in path)  # that no quotes can hold
        ]


def _format_mention(path: str, tag: str) -> str:
    """A folder may be gone on from, so it is not closed."""
    folder = path.endswith("/")
    if not _NEEDS_QUOTES.search(path):
        return f"@{tag}{path}{'' if folder else ' '}"
    quote = "'" if '"' in path else '"'
    return f"@{tag}{quote}{path}" + ("" if folder else f"{quote} ")


def _shell_quote(path: str) -> str:
    """Quoted where it must be, but for the sign of a home."""
    from shlex import quote

    return f"~/{quote(path[2:])}" if path.startswith("~/") and path[2:] else quote(path)


def _filter_by_prefix(items: Sequence[NamedItem], prefix: str) -> list[Completion]:
    fitting = (one for one in items if one.name.startswith(prefix))
    return [Completion(one.name, len(prefix), one.name, sanitise(one.description)) for one in fitting]


def _takes_argument(name: str) -> bool:
    entry = COMMANDS.get(ALIASES.get(name, name))
    return entry is None or bool(entry.argument)


def _with_space(completion: Completion) -> Completion:
    return msgspec.structs.replace(completion, text=f"{completion.text} ")
