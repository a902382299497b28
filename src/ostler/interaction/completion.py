"""Completes slash commands, their arguments, `@` mentions and shell paths before the cursor."""

import asyncio
import re
from collections.abc import Sequence

import msgspec

from ostler.core.errors import OstlerError
from ostler.interaction.builtin_commands import ALIASES, COMMANDS, COMPLETION_NAMES, ArgumentKind
from ostler.interaction.dispatcher import CommandDispatcher
from ostler.interaction.services import CommandServices, NamedItem
from ostler.interaction.session_commands import shorten_prompt
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
    """A candidate. It replaces the last `replace_length` characters before the cursor."""

    text: str
    replace_length: int
    label: str
    description: str = ""


class CompletionSource:
    """Finds the candidates for one session."""

    def __init__(self, services: CommandServices, commands: CommandDispatcher, themes: Sequence[str] = ()) -> None:
        self._services = services
        self._commands = commands
        self._themes = themes

    async def completions(self, text: str, *, explicit: bool) -> Sequence[Completion]:
        """Return the candidates for the text before the cursor, or none after a timeout or an error.

        `explicit` is true if the user pressed a key for it, false while typing.
        """
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
            paths = await self._complete_path(word, mention[1] or "", 1 + quoted + len(mention[1] or ""))
            return paths if mention[1] else [*paths, *await self._complete_resource(word, 1 + quoted)]
        argument = _ARGUMENT.fullmatch(text)
        return await self._complete_argument(argument[1], argument[2]) if argument else ()

    async def _complete_command(self, prefix: str) -> Sequence[Completion]:
        builtins = [NamedItem(name, COMMANDS[ALIASES.get(name, name)].description) for name in COMPLETION_NAMES]
        completions = _filter_by_prefix([*builtins, *await self._commands.external_commands()], prefix)
        return [_with_space(item) if _takes_argument(item.text) else item for item in completions]

    async def _complete_argument(self, name: str, prefix: str) -> Sequence[Completion]:
        entry = COMMANDS.get(ALIASES.get(name, name))
        if entry is None:
            return ()
        if entry.argument == "files":
            return await self._complete_path(prefix, "", 0)
        if entry.argument == "options":
            return _filter_by_prefix(self._commands.info.option_choices(prefix), prefix)
        return _filter_by_prefix(await self._argument_choices(entry.argument), prefix)

    async def _argument_choices(self, kind: ArgumentKind) -> Sequence[NamedItem]:
        match kind:
            case "models":
                models = (*self._services.profiles(), *(NamedItem(name) for name in await self._services.models()))
                return self._commands.info.choices("model") or models
            case "agents":
                return await self._services.agents()
            case "modes":
                return self._commands.info.mode_choices() or await self._services.agents()
            case "thinking" | "profile":
                return self._commands.info.choices(kind)
            case "sessions":
                return [
                    NamedItem(session.id, session.title or f"{session.turns} turns")
                    for session in await self._services.sessions("")
                ]
            case "turns":
                return [
                    NamedItem(str(number), shorten_prompt(entry.text))
                    for number, entry in enumerate(self._commands.timeline.entries, 1)
                ]
            case "commands":
                return [NamedItem(name, entry.description) for name, entry in COMMANDS.items()]
            case _:
                return [NamedItem(theme) for theme in self._themes] if kind == "themes" else ()

    async def _complete_resource(self, prefix: str, mark_length: int) -> Sequence[Completion]:
        """Complete a resource of an MCP server; a server's name alone is left open, so that typing can continue."""
        return [
            Completion(
                f"@{item.name}" if item.name.endswith(":") else _format_mention(item.name, ""),
                len(prefix) + mark_length,
                sanitise(item.name),
                sanitise(item.description),
            )
            for item in await self._commands.resources(prefix)
            if not ('"' in item.name and "'" in item.name)
        ]

    async def _complete_shell_path(self, prefix: str) -> Sequence[Completion]:
        paths = await self._services.files(prefix)
        return [Completion(_shell_quote(path), len(prefix), sanitise(path)) for path in paths]

    async def _complete_path(self, prefix: str, tag: str, mark_length: int) -> Sequence[Completion]:
        """Complete a path; in a mention (`mark_length` > 0) with its `@` and with quotes where needed."""
        paths = await self._services.files(prefix)
        return [
            Completion(_format_mention(path, tag) if mark_length else path, len(prefix) + mark_length, sanitise(path))
            for path in paths
            if not (mark_length and '"' in path and "'" in path)  # cannot be quoted
            and not (path.endswith("/") and path == prefix.removeprefix("./"))  # is already typed
        ]


def _format_mention(path: str, tag: str) -> str:
    """Return the mention of a path. A folder is left open (no space, no closing quote) so that typing can continue."""
    folder = path.endswith("/")
    if not _NEEDS_QUOTES.search(path):
        return f"@{tag}{path}{'' if folder else ' '}"
    quote = "'" if '"' in path else '"'
    return f"@{tag}{quote}{path}" + ("" if folder else f"{quote} ")


def _shell_quote(path: str) -> str:
    """Quote a path for the shell if needed, except a leading `~/`."""
    from shlex import quote

    return f"~/{quote(path[2:])}" if path.startswith("~/") and path[2:] else quote(path)


def _filter_by_prefix(items: Sequence[NamedItem], prefix: str) -> list[Completion]:
    matching = (item for item in items if item.name.startswith(prefix))
    return [Completion(item.name, len(prefix), item.name, sanitise(item.description)) for item in matching]


def _takes_argument(name: str) -> bool:
    entry = COMMANDS.get(ALIASES.get(name, name))
    return entry is None or bool(entry.argument)


def _with_space(completion: Completion) -> Completion:
    return msgspec.structs.replace(completion, text=f"{completion.text} ")
