"""Prompts of MCP servers as slash commands: `/server:prompt arguments`."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ostler.core.errors import UsageError
from ostler.core.prompt import ImageContent, PromptContent, TextContent
from ostler.mcp.client import Ask
from ostler.mcp.server import McpServer
from ostler.mcp.tool_results import convert_blocks
from ostler.text.lazy_regex import lazy_regex
from ostler.text.sanitise import sanitise
from ostler.wire.mcp import ServerPrompt

MAX_CHARACTERS = 1024 * 1024
MAX_MESSAGES = 100
_NOT_ALLOWED = lazy_regex(r"[^\w./+@-]+")
_NAMED = lazy_regex(r"([\w.-]+)=(.*)", re.DOTALL)


class PromptCommand(NamedTuple):
    """A slash command for a server's prompt."""

    name: str
    server: McpServer
    prompt: ServerPrompt

    @property
    def usage(self) -> str:
        words = [
            f"<{sanitise(argument.name)[:40]}>" if argument.required else f"[{sanitise(argument.name)[:40]}]"
            for argument in self.prompt.arguments
        ]
        return " ".join([f"/{self.name}", *words])

    @property
    def description(self) -> str:
        """The server's description, on one line, or else the usage."""
        text = " ".join(sanitise(self.prompt.description).split())[:200]
        arguments = self.usage.partition(" ")[2]
        return f"{text} {arguments}".strip() or f"a prompt of the MCP server {sanitise(self.server.entry.name)[:80]}"


class ServerPrompts:
    """The prompts of the servers of a session."""

    def __init__(self, servers: Sequence[McpServer], ask: Ask) -> None:
        self._servers = servers
        self._ask = ask

    def commands(self) -> dict[str, PromptCommand]:
        """Return the commands of the known prompts by name; the first of several with the same name is used."""
        commands: dict[str, PromptCommand] = {}
        for server in self._servers:
            for prompt in server.offers.prompts if server.is_listed else ():
                name = f"{_command_prefix(server)}:{_NOT_ALLOWED.sub('_', prompt.name)}"
                commands.setdefault(name, PromptCommand(name, server, prompt))
        return commands

    async def expand(self, name: str, arguments: str) -> list[PromptContent] | None:
        """Return the content of a prompt, or None if the name is not that of a server and a prompt.

        Raises `OstlerError` for wrong arguments, or if the server fails.
        """
        command = await self._find(name)
        if command is None:
            return None
        values = parse_arguments(command, arguments)
        result = await command.server.get_prompt(command.prompt.name, values, self._ask)
        messages = result.get("messages")
        return _as_blocks(name, messages[:MAX_MESSAGES] if isinstance(messages, list) else [])

    async def _find(self, name: str) -> PromptCommand | None:
        """Return a command. If its server has not listed its prompts yet, it is started."""
        prefix, separator, _ = name.partition(":")
        servers = [server for server in self._servers if server.is_listed and _command_prefix(server) == prefix]
        if not separator or not servers:
            return None
        if name not in self.commands():
            for server in servers:
                await server.load_offers()
        return self.commands().get(name)


def _command_prefix(server: McpServer) -> str:
    """Return the first part of a server's commands; a command begins with a letter and has no other colon."""
    name = _NOT_ALLOWED.sub("_", server.entry.name)
    return name if name[:1].isascii() and name[:1].isalpha() else f"mcp-{name}"


def parse_arguments(command: PromptCommand, text: str) -> dict[str, str]:
    """Return the arguments by name: `name=value`, or in the declared order. Raises `UsageError`.

    The last argument gets all remaining words; the only argument gets the unchanged text.
    """
    declared = [argument.name for argument in command.prompt.arguments]
    values: dict[str, str] = {}
    if len(declared) == 1 and text and not text.startswith(f"{declared[0]}="):
        values = {declared[0]: text}
    else:
        values = _assign(command, declared, _split(text))
    required = [argument.name for argument in command.prompt.arguments if argument.required]
    missing = [name for name in required if not values.get(name)]
    if missing:
        raise UsageError(f"/{command.name} needs {sanitise(missing[0])[:40]}", hint=f"usage: {command.usage}")
    return values


def _assign(command: PromptCommand, declared: Sequence[str], words: Sequence[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    others: list[str] = []
    for word in words:
        match = _NAMED.fullmatch(word)
        if match and match[1] in declared:
            named[match[1]] = match[2]
        else:
            others.append(word)
    free = [name for name in declared if name not in named]
    if others and not free:
        takes = "takes no arguments" if not declared else f"has no argument for {others[0][:40]!r}"
        raise UsageError(f"/{command.name} {takes}", hint=f"usage: {command.usage}")
    last = len(free) - 1
    positional = {name: others[place] for place, name in enumerate(free[:-1]) if place < len(others)}
    rest: Mapping[str, str] = {free[-1]: " ".join(others[last:])} if free and others[last:] else {}
    return {**named, **positional, **rest}


def _split(text: str) -> list[str]:
    """Split into words; quotes join words unless one is not closed, as in "don't"."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _as_blocks(name: str, messages: Sequence[object]) -> list[PromptContent]:
    """Return one text with all messages, then the images. Raises `UsageError` if it is empty or too large."""
    entries = [message for message in messages if isinstance(message, dict)]
    with_roles = any(message.get("role") == "assistant" for message in entries)
    texts: list[str] = []
    images: list[PromptContent] = []
    for message in entries:
        content = message.get("content")
        for part in convert_blocks(content if isinstance(content, list) else [content]):
            if isinstance(part, ImageContent):
                images.append(part)
            elif part.strip():
                role = "Assistant: " if message.get("role") == "assistant" else "User: "
                texts.append(f"{role if with_roles else ''}{part}")
    text = "\n\n".join(texts)
    if not text.strip() and not images:
        raise UsageError(f"the MCP server returned no text for /{name}")
    if len(text) > MAX_CHARACTERS:
        raise UsageError(f"the prompt of /{name} is too large ({len(text):,} characters)")
    return [TextContent(text or f"/{name}"), *images]
