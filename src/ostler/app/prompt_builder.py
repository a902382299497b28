"""From what was typed to a prompt, for every face alike: `/command args`, `@agent:name`, `@file`."""

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from ostler.app.attachments import AttachmentCollector
from ostler.app.project_knowledge import ProjectKnowledge
from ostler.core.errors import UsageError
from ostler.core.prompt import EmbeddedResource, Prompt, PromptContent, PromptTarget, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.knowledge.command_templates import ExpandedCommand, expand_template
from ostler.knowledge.custom_commands import CustomCommand
from ostler.knowledge.model_name_rules import FOREIGN_MODEL_NAMES, is_allowed_model
from ostler.knowledge.prompt_syntax import mentioned_agent, parse_slash_command
from ostler.settings.effective import Settings
from ostler.settings.untrusted_project import model_names
from ostler.text.closest_name import closest_name

MAX_SHELL_COMMANDS = 20
RunTool = Callable[[ToolCall], Awaitable[ToolResult]]


class BuiltPrompt(msgspec.Struct, frozen=True):
    """A prompt to begin a turn with, and what its person is told of it."""

    prompt: Prompt
    notices: Sequence[str] = ()


class PromptBuilder:
    """Looks at the files anew each time: a command that was just written can be used."""

    def __init__(self, cwd: Path, settings: Settings, *, allow_outside: bool) -> None:
        """`outside`: files that the person mentions may lie outside the workspace."""
        self._cwd = cwd
        self._settings = settings
        self._allow_outside = allow_outside

    def commands(self) -> dict[str, CustomCommand]:
        """The commands that files define, by name."""
        return ProjectKnowledge(str(self._cwd), self._settings).commands()

    async def build(self, text: str, run_tool: RunTool) -> BuiltPrompt:
        """What was typed, whatever it is: a command of the files, or words. `call` is the session's door."""
        name, arguments = parse_slash_command(text)
        found = await self.expand(name, arguments, run_tool) if name else None
        if found:
            return found
        if name and "/" not in name and not os.path.lexists(f"/{name}"):
            raise self._unknown_command_error(name)
        return await self.from_text(text)

    def _unknown_command_error(self, name: str) -> UsageError:
        """A word on which command was meant: one of the files, or one that only a prompt has."""
        from ostler.commands.builtin_commands import ALIASES, COMMANDS

        if name in COMMANDS or name in ALIASES:
            return UsageError(f"/{name} is a command of the prompt, not of a run", hint="ostler chat has it")
        theirs = self.commands()
        near = closest_name(name, theirs)
        there = f"there is: {', '.join(f'/{one}' for one in sorted(theirs)[:20])}" if theirs else "no file defines any"
        hint = f"did you mean /{near}?" if near else f"{there}; if these are words, begin them with another one"
        return UsageError(f"there is no command /{name[:80]}", hint=hint)

    async def from_text(self, text: str) -> BuiltPrompt:
        """Plain words, with the files they mention and the agent they choose."""
        attaching = AttachmentCollector(self._cwd, allow_outside=self._allow_outside)
        await attaching.add_mentions(text)
        return BuiltPrompt(
            Prompt(_new_id(), (TextContent(text), *attaching.blocks.values()), target=self.target_of(text)),
            attaching.notices,
        )

    def target_of(self, text: str) -> PromptTarget | None:
        """Who works from now on, if the words say so; whoever is not there is a clear error."""
        name = mentioned_agent(text)
        if not name:
            return None
        agents = self._selectable_agents()
        if name not in agents:
            raise UsageError(f"there is no agent {name[:80]!r} to work with", hint=f"there is: {', '.join(agents)}")
        return PromptTarget(name, for_session=True)

    async def expand(self, name: str, arguments: str, run_tool: RunTool) -> BuiltPrompt | None:
        """A command as the prompt it stands for; nothing when there is none of that name.

        What it wants run goes through the session's door, and what is refused there ends it.
        """
        command = self.commands().get(name)
        if command is None:
            return None
        expanded = expand_template(command.template, arguments)
        self._check_shell_commands(command, expanded)
        told: list[str] = []
        cast = self._command_target(command, arguments, told)
        outputs = [await _shell_output(shell, command, run_tool) for shell in expanded.shell_commands]
        attaching = AttachmentCollector(self._cwd, allow_outside=self._allow_outside)
        for file in expanded.files:
            if not file.path.startswith("agent:"):
                await attaching.add_file(file.path.removeprefix("file:"), typed=file.from_arguments)
        text = expanded.render(outputs)
        if not text.strip():  # most models refuse a prompt without a word, and the others make one up
            raise UsageError(f"/{name} ({command.origin}) comes out empty", hint="give it words, or mend its file")
        blocks = (TextContent(text), *attaching.blocks.values())
        if cast and cast.task:
            cast = msgspec.structs.replace(cast, task=_as_text(blocks))
            blocks = (TextContent(f"/{name} {arguments}".rstrip()),)
        return BuiltPrompt(Prompt(_new_id(), blocks, target=cast), (*told, *attaching.notices))

    def _check_shell_commands(self, command: CustomCommand, expanded: ExpandedCommand) -> None:
        """A project's command runs nothing before its person trusts it."""
        shells = expanded.shell_commands
        if len(shells) > MAX_SHELL_COMMANDS:
            raise UsageError(f"/{command.name} wants {len(shells)} commands run, {MAX_SHELL_COMMANDS} are the most")
        if shells and command.scope == "project" and not self._settings.trusted:
            raise UsageError(
                f"/{command.name} ({command.origin}) would run `{shells[0][:200]}`, and this project is not trusted",
                hint="ostler trust shows what it wants, and trusts it",
            )

    def _command_target(self, command: CustomCommand, arguments: str, notices: list[str]) -> PromptTarget | None:
        """The agent that the person names counts from then on, the file's for this turn; a subagent gets a task."""
        if typed := mentioned_agent(arguments):
            return self.target_of(f"@agent:{typed} {command.name}")
        agents, takers = self._selectable_agents(), self._task_agents()
        agent = command.agent
        if agent and agent not in (*agents, *takers):
            notices.append(f"{command.origin}: there is no agent {agent[:80]!r}; yours works on it")
            agent = ""
        model = self._command_model(command, notices)
        if command.subtask and takers and agent and agent not in takers:
            notices.append(f"{command.origin}: {agent} takes no tasks; it works on this turn itself")
        elif (command.subtask or (agent in takers and agent not in agents)) and takers:
            return PromptTarget(agent or "general", task=command.template)
        return PromptTarget(agent, model) if agent or model else None

    def _command_model(self, command: CustomCommand, notices: list[str]) -> str:
        own = command.scope == "user" and command.origin.startswith("~/.ostler/")
        if not command.model or is_allowed_model(command.model, model_names(self._settings.config), is_user_file=own):
            return command.model
        if command.model not in FOREIGN_MODEL_NAMES:
            notices.append(
                f"{command.origin}: its model {command.model[:80]!r} is none of yours; the session's is taken"
            )
        return ""

    def _selectable_agents(self) -> list[str]:
        agents = ProjectKnowledge(str(self._cwd), self._settings).agents(trusted=self._settings.trusted)
        return sorted(agent.name for agent in agents.values() if agent.user_selectable)

    def _task_agents(self) -> list[str]:
        if not self._settings.config.limits.subagents:
            return []
        agents = ProjectKnowledge(str(self._cwd), self._settings).agents(trusted=self._settings.trusted)
        return sorted(agent.name for agent in agents.values() if agent.accepts_tasks)


async def _shell_output(shell: str, command: CustomCommand, run_tool: RunTool) -> str:
    """What a command of the template printed; nobody typed it, so it is decided like a model's."""
    result = await run_tool(ToolCall(_new_id(), "bash", {"command": shell, "reason": f"/{command.name}"}))
    if result.status in ("ok", "failed") and isinstance(result.data, dict):
        return "\n".join(str(result.data.get(name, "")).rstrip("\n") for name in ("stdout", "stderr")).strip()
    why = result.for_human.summary or result.for_model
    raise UsageError(f"/{command.name} needs the output of `{shell[:200]}`, which did not run: {why}")


def _as_text(blocks: Sequence[PromptContent]) -> str:
    """A prompt for whoever takes only words."""
    parts = (block.text if isinstance(block, TextContent) else _quote_resource(block) for block in blocks)
    return "\n\n".join(filter(None, parts))


def _quote_resource(block: PromptContent) -> str:
    return f"{block.uri}:\n{block.text}" if isinstance(block, EmbeddedResource) else ""


def _new_id() -> str:
    return f"prompt-{os.urandom(6).hex()}"
