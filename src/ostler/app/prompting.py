"""From what was typed to a prompt, for every face alike: `/command args`, `@agent:name`, `@file`."""

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from ostler.app.attaching import Attaching
from ostler.app.knowing import Knowledge
from ostler.knowledge.commands import Command
from ostler.knowledge.own_models import FOREIGN, usable_model
from ostler.knowledge.templates import Expanded, expand
from ostler.knowledge.triggers import agent_named, slash
from ostler.settings.effective import Settings
from ostler.settings.narrow import model_names
from ostler.text.names import nearest
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.prompt import Block, Cast, Prompt, Resource, Text
from ostler.vocabulary.tools import ToolCall, ToolResult

MOST_SHELLS = 20
Call = Callable[[ToolCall], Awaitable[ToolResult]]


class Ready(msgspec.Struct, frozen=True):
    """A prompt to begin a turn with, and what its person is told of it."""

    prompt: Prompt
    told: Sequence[str] = ()


class Prompting:
    """Looks at the files anew each time: a command that was just written can be used."""

    def __init__(self, cwd: Path, settings: Settings, *, outside: bool) -> None:
        """`outside`: files that the person mentions may lie outside the workspace."""
        self._cwd = cwd
        self._settings = settings
        self._outside = outside

    def commands(self) -> dict[str, Command]:
        """The commands that files define, by name."""
        return Knowledge(str(self._cwd), self._settings).commands()

    async def ready(self, typed: str, call: Call) -> Ready:
        """What was typed, whatever it is: a command of the files, or words. `call` is the session's door."""
        name, arguments = slash(typed)
        found = await self.expand(name, arguments, call) if name else None
        if found:
            return found
        if name and "/" not in name and not os.path.lexists(f"/{name}"):
            raise self._unknown(name)
        return await self.words(typed)

    def _unknown(self, name: str) -> UsageError:
        """A word on which command was meant: one of the files, or one that only a prompt has."""
        from ostler.commands.table import ALIASES, COMMANDS

        if name in COMMANDS or name in ALIASES:
            return UsageError(f"/{name} is a command of the prompt, not of a run", hint="ostler chat has it")
        theirs = self.commands()
        near = nearest(name, theirs)
        there = f"there is: {', '.join(f'/{one}' for one in sorted(theirs)[:20])}" if theirs else "no file defines any"
        hint = f"did you mean /{near}?" if near else f"{there}; if these are words, begin them with another one"
        return UsageError(f"there is no command /{name[:80]}", hint=hint)

    async def words(self, typed: str) -> Ready:
        """Plain words, with the files they mention and the agent they choose."""
        attaching = Attaching(self._cwd, outside=self._outside)
        await attaching.mentioned(typed)
        return Ready(
            Prompt(_new_id(), (Text(typed), *attaching.blocks.values()), cast=self.cast(typed)), attaching.told
        )

    def cast(self, typed: str) -> Cast | None:
        """Who works from now on, if the words say so; whoever is not there is a clear error."""
        name = agent_named(typed)
        if not name:
            return None
        agents = self._agents()
        if name not in agents:
            raise UsageError(f"there is no agent {name[:80]!r} to work with", hint=f"there is: {', '.join(agents)}")
        return Cast(name, lasting=True)

    async def expand(self, name: str, arguments: str, call: Call) -> Ready | None:
        """A command as the prompt it stands for; nothing when there is none of that name.

        What it wants run goes through the session's door, and what is refused there ends it.
        """
        command = self.commands().get(name)
        if command is None:
            return None
        expanded = expand(command.template, arguments)
        self._check(command, expanded)
        told: list[str] = []
        cast = self._cast(command, arguments, told)
        outputs = [await _output(shell, command, call) for shell in expanded.shells]
        attaching = Attaching(self._cwd, outside=self._outside)
        for file in expanded.files:
            if not file.path.startswith("agent:"):
                await attaching.take(file.path.removeprefix("file:"), typed=file.typed)
        text = expanded.text(outputs)
        if not text.strip():  # most models refuse a prompt without a word, and the others make one up
            raise UsageError(f"/{name} ({command.origin}) comes out empty", hint="give it words, or mend its file")
        blocks = (Text(text), *attaching.blocks.values())
        if cast and cast.task:
            cast = msgspec.structs.replace(cast, task=_as_text(blocks))
            blocks = (Text(f"/{name} {arguments}".rstrip()),)
        return Ready(Prompt(_new_id(), blocks, cast=cast), (*told, *attaching.told))

    def _check(self, command: Command, expanded: Expanded) -> None:
        """A project's command runs nothing before its person trusts it."""
        shells = expanded.shells
        if len(shells) > MOST_SHELLS:
            raise UsageError(f"/{command.name} wants {len(shells)} commands run, {MOST_SHELLS} are the most")
        if shells and command.scope == "project" and not self._settings.trusted:
            raise UsageError(
                f"/{command.name} ({command.origin}) would run `{shells[0][:200]}`, and this project is not trusted",
                hint="ostler trust shows what it wants, and trusts it",
            )

    def _cast(self, command: Command, arguments: str, told: list[str]) -> Cast | None:
        """The agent that the person names counts from then on, the file's for this turn; a subagent gets a task."""
        if typed := agent_named(arguments):
            return self.cast(f"@agent:{typed} {command.name}")
        agents, takers = self._agents(), self._takers()
        agent = command.agent
        if agent and agent not in (*agents, *takers):
            told.append(f"{command.origin}: there is no agent {agent[:80]!r}; yours works on it")
            agent = ""
        model = self._model(command, told)
        if command.subtask and takers and agent and agent not in takers:
            told.append(f"{command.origin}: {agent} takes no tasks; it works on this turn itself")
        elif (command.subtask or (agent in takers and agent not in agents)) and takers:
            return Cast(agent or "general", task=command.template)
        return Cast(agent, model) if agent or model else None

    def _model(self, command: Command, told: list[str]) -> str:
        own = command.scope == "user" and command.origin.startswith("~/.ostler/")
        if not command.model or usable_model(command.model, model_names(self._settings.config), own=own):
            return command.model
        if command.model not in FOREIGN:
            told.append(f"{command.origin}: its model {command.model[:80]!r} is none of yours; the session's is taken")
        return ""

    def _agents(self) -> list[str]:
        agents = Knowledge(str(self._cwd), self._settings).agents(trusted=self._settings.trusted)
        return sorted(agent.name for agent in agents.values() if agent.talks)

    def _takers(self) -> list[str]:
        if not self._settings.config.limits.subagents:
            return []
        agents = Knowledge(str(self._cwd), self._settings).agents(trusted=self._settings.trusted)
        return sorted(agent.name for agent in agents.values() if agent.works)


async def _output(shell: str, command: Command, call: Call) -> str:
    """What a command of the template printed; nobody typed it, so it is decided like a model's."""
    result = await call(ToolCall(_new_id(), "bash", {"command": shell, "reason": f"/{command.name}"}))
    if result.status in ("ok", "failed") and isinstance(result.data, dict):
        return "\n".join(str(result.data.get(name, "")).rstrip("\n") for name in ("stdout", "stderr")).strip()
    why = result.for_human.summary or result.for_model
    raise UsageError(f"/{command.name} needs the output of `{shell[:200]}`, which did not run: {why}")


def _as_text(blocks: Sequence[Block]) -> str:
    """A prompt for whoever takes only words."""
    parts = (block.text if isinstance(block, Text) else _quoted(block) for block in blocks)
    return "\n\n".join(filter(None, parts))


def _quoted(block: Block) -> str:
    return f"{block.uri}:\n{block.text}" if isinstance(block, Resource) else ""


def _new_id() -> str:
    return f"prompt-{os.urandom(6).hex()}"
