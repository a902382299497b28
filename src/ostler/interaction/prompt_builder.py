"""Builds a prompt from typed text: `/command args`, `@agent:name`, `@file`."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ostler.core.errors import UsageError
from ostler.core.prompt import EmbeddedResource, Prompt, PromptContent, PromptTarget, TextContent
from ostler.core.tools import ToolCall
from ostler.interaction.services import TYPED, BuiltPrompt, PromptSource, RunTool
from ostler.knowledge.attachments import AttachmentCollector, MentionedResources
from ostler.knowledge.command_templates import ExpandedCommand, expand_template
from ostler.knowledge.custom_commands import CustomCommand
from ostler.knowledge.mentions import typed_mentions
from ostler.knowledge.name_rules import FOREIGN_MODEL_NAMES, is_allowed_model
from ostler.knowledge.project_knowledge import ProjectKnowledge
from ostler.knowledge.prompt_syntax import AGENT_PREFIX, mentioned_agent, parse_slash_command, strip_agent_mentions
from ostler.settings.effective import Settings
from ostler.settings.untrusted_project import model_names

MAX_SHELL_COMMANDS = 20


class ServerPromptSource(Protocol):
    """Commands that come from MCP servers."""

    def commands(self) -> Mapping[str, object]: ...

    async def expand(self, name: str, arguments: str) -> list[PromptContent] | None:
        """Return the prompt of a command, or None if there is no such command."""


class PromptBuilder:
    """Builds prompts for one project."""

    def __init__(
        self,
        cwd: Path,
        settings: Settings,
        knowledge: ProjectKnowledge,
        *,
        allow_outside: bool,
        resources: MentionedResources | None = None,
        server_prompts: ServerPromptSource | None = None,
    ) -> None:
        """With `allow_outside` files that the user mentions may be outside the workspace.

        `resources` can be mentioned like files, and `server_prompts` are commands.
        """
        self._cwd = cwd
        self._settings = settings
        self._knowledge = knowledge
        self._resources = resources
        self._server_prompts = server_prompts
        self._allow_outside = allow_outside

    def commands(self) -> dict[str, CustomCommand]:
        """Return the commands defined in files, by name."""
        return self._knowledge.commands()

    async def build(self, text: str, run_tool: RunTool, source: PromptSource = TYPED) -> BuiltPrompt:
        """Build a prompt from typed text: a custom command or plain text. `run_tool` runs calls in the session.

        Raises `UsageError` if the text looks like a command that does not exist.
        """
        name, arguments = parse_slash_command(text)
        expanded = await self.expand(name, arguments, run_tool, source) if name else None
        if expanded:
            return expanded
        if name and "/" not in name and not os.path.lexists(f"/{name}"):
            raise self._unknown_command_error(name)
        return await self.from_text(text, source)

    def _unknown_command_error(self, name: str) -> UsageError:
        from ostler.interaction.builtin_commands import ALIASES, COMMANDS

        if name in COMMANDS or name in ALIASES:
            return UsageError(f"/{name} is only available in the interactive client", hint="use `ostler chat`")
        commands = [*self.commands(), *(self._server_prompts.commands() if self._server_prompts else ())]
        from ostler.text.closest_name import closest_name

        suggestion = closest_name(name, commands)
        names = ", ".join(f"/{command}" for command in sorted(commands)[:20])
        available = f"available: {names}" if commands else "no custom commands are defined"
        hint = (
            f"did you mean /{suggestion}?"
            if suggestion
            else f"{available}; if this is text, do not start it with a slash"
        )
        return UsageError(f"unknown command /{name[:80]}", hint=hint)

    async def from_text(self, text: str, source: PromptSource = TYPED) -> BuiltPrompt:
        """Build a prompt from plain text, with the files and the agent that it mentions."""
        attachments = AttachmentCollector(
            self._cwd,
            allow_outside=self._allow_outside,
            approved=source.approved,
            ask_about_outside=source.may_be_pasted,
            resources=self._resources,
        )
        await attachments.add_mentions(text, source.pasted)
        target = self.target_of(text, source.pasted)
        notices = self._ignored_agents(text, source.pasted)
        questions = list(attachments.questions)
        if target and not source.approved and (question := self._agent_question(target.agent, source)):
            questions.append(question)
            target = None
        return BuiltPrompt(
            Prompt(_new_id(), (TextContent(text), *attachments.blocks.values()), target=target),
            (*notices, *attachments.notices),
            tuple(questions),
        )

    def target_of(self, text: str, pasted: str = "") -> PromptTarget | None:
        """Return the agent that the text selects, if any. Raises `UsageError` if it does not exist."""
        name = mentioned_agent(text, pasted)
        if not name:
            return None
        agents = self._selectable_agents()
        if name not in agents:
            raise UsageError(f"unknown agent {name[:80]!r}", hint=f"available: {', '.join(agents)}")
        return PromptTarget(name, for_session=True, selects_only=not strip_agent_mentions(text))

    def _ignored_agents(self, text: str, pasted: str) -> list[str]:
        """Return a notice for each known agent in pasted or quoted text, which selects none."""
        mentions = (path for _, _, path, typed in typed_mentions(text, pasted) if not typed)
        names = {path.removeprefix(AGENT_PREFIX) for path in mentions if path.startswith(AGENT_PREFIX)}
        known = sorted(names & set(self._selectable_agents())) if names else []
        return [f"@agent:{name} is pasted or quoted, so it selects no agent; type it yourself" for name in known]

    def _agent_question(self, name: str, source: PromptSource) -> str:
        """Return what to ask before the agent is selected, or an empty string."""
        if self._may_do_more(name, source.agent):
            return f"switch to the agent {name}, which may do more than {source.agent}"
        return f"switch to the agent {name}" if source.may_be_pasted and name != source.agent else ""

    def _may_do_more(self, name: str, current: str) -> bool:
        agents = self._knowledge.agents
        return current in agents and name in agents and agents[name].may_do_more_than(agents[current])

    def _check_target(self, target: PromptTarget | None, source: PromptSource) -> None:
        """Raise `UsageError` if a command selects an agent that may do more. A task is restricted by its parent."""
        if target and target.agent and not target.task and self._may_do_more(target.agent, source.agent):
            raise UsageError(
                f"the command selects the agent {target.agent}, which may do more than {source.agent}",
                hint=f"select {target.agent} yourself first",
            )

    async def expand(
        self, name: str, arguments: str, run_tool: RunTool, source: PromptSource = TYPED
    ) -> BuiltPrompt | None:
        """Expand a custom command or a server's prompt. Return None if there is no command of that name.

        Its shell commands run as tool calls of the session. Raises `UsageError` if one is denied.
        """
        command = self.commands().get(name)
        if command is None:
            content = await self._server_prompts.expand(name, arguments) if self._server_prompts else None
            return BuiltPrompt(Prompt(_new_id(), tuple(content))) if content else None
        expanded = expand_template(command.template, arguments)
        self._check_shell_commands(command, expanded)
        pasted = arguments if source.may_be_pasted else source.pasted
        notices = self._ignored_agents(arguments, pasted)
        target = self._command_target(command, arguments, pasted, notices)
        self._check_target(target, source)
        outputs = [await _shell_output(shell, command, run_tool) for shell in expanded.shell_commands]
        attachments = AttachmentCollector(self._cwd, allow_outside=self._allow_outside, resources=self._resources)
        typed = {path for _, _, path, is_typed in typed_mentions(arguments, pasted) if is_typed}
        for file in expanded.files:
            if not file.path.startswith("agent:"):
                await attachments.add_file(
                    file.path.removeprefix("file:"), typed=file.from_arguments and file.path in typed
                )
        text = expanded.render(outputs)
        if not text.strip():  # most models reject an empty prompt
            raise UsageError(
                f"/{name} ({command.origin}) expands to an empty prompt", hint="pass arguments, or fix the command file"
            )
        blocks = (TextContent(text), *attachments.blocks.values())
        if target and target.task:
            target = msgspec.structs.replace(target, task=_as_text(blocks))
            blocks = (TextContent(f"/{name} {arguments}".rstrip()),)
        return BuiltPrompt(Prompt(_new_id(), blocks, target=target), (*notices, *attachments.notices))

    def _check_shell_commands(self, command: CustomCommand, expanded: ExpandedCommand) -> None:
        """Raise `UsageError` for too many shell commands, or for any in an untrusted project."""
        shells = expanded.shell_commands
        if len(shells) > MAX_SHELL_COMMANDS:
            raise UsageError(
                f"/{command.name} has {len(shells)} shell commands; at most {MAX_SHELL_COMMANDS} are allowed"
            )
        if shells and command.scope == "project" and not self._settings.trusted:
            raise UsageError(
                f"/{command.name} ({command.origin}) would run `{shells[0][:200]}`, and this project is not trusted",
                hint="review and trust it with `ostler trust`",
            )

    def _command_target(
        self, command: CustomCommand, arguments: str, pasted: str, notices: list[str]
    ) -> PromptTarget | None:
        """Return the target: an agent in the arguments for the session, the file's for this turn or as a task."""
        if typed := mentioned_agent(arguments, pasted):
            return self.target_of(f"@agent:{typed} {command.name}")
        agents, task_agents = self._selectable_agents(), self._task_agents()
        agent = command.agent
        if agent and agent not in (*agents, *task_agents):
            notices.append(f"{command.origin}: unknown agent {agent[:80]!r}; using the current agent")
            agent = ""
        model = self._command_model(command, notices)
        if command.subtask and task_agents and agent and agent not in task_agents:
            notices.append(f"{command.origin}: agent {agent} cannot be used as a subagent; it runs this turn itself")
        elif (command.subtask or (agent in task_agents and agent not in agents)) and task_agents:
            return PromptTarget(agent or "general", task=command.template)
        return PromptTarget(agent, model) if agent or model else None

    def _command_model(self, command: CustomCommand, notices: list[str]) -> str:
        is_user_file = command.scope == "user" and command.origin.startswith("~/.ostler/")
        if not command.model or is_allowed_model(
            command.model, model_names(self._settings.config), is_user_file=is_user_file
        ):
            return command.model
        if command.model not in FOREIGN_MODEL_NAMES:
            notices.append(
                f"{command.origin}: model {command.model[:80]!r} is not configured; using the session's model"
            )
        return ""

    def _selectable_agents(self) -> list[str]:
        agents = self._knowledge.agents
        return sorted(agent.name for agent in agents.values() if agent.user_selectable)

    def _task_agents(self) -> list[str]:
        if not self._settings.config.limits.subagents:
            return []
        agents = self._knowledge.agents
        return sorted(agent.name for agent in agents.values() if agent.accepts_tasks)


async def _shell_output(shell: str, command: CustomCommand, run_tool: RunTool) -> str:
    """Run a shell command of the template, with the permissions of a model's call, and return its output."""
    result = await run_tool(ToolCall(_new_id(), "bash", {"command": shell, "reason": f"/{command.name}"}))
    if result.status in ("ok", "failed") and isinstance(result.data, dict):
        return "\n".join(str(result.data.get(name, "")).rstrip("\n") for name in ("stdout", "stderr")).strip()
    reason = result.for_human.summary or result.for_model
    raise UsageError(f"/{command.name} needs the output of `{shell[:200]}`, which did not run: {reason}")


def _as_text(blocks: Sequence[PromptContent]) -> str:
    """Return the blocks as one text, for a subagent's task."""
    parts = (block.text if isinstance(block, TextContent) else _quote_resource(block) for block in blocks)
    return "\n\n".join(filter(None, parts))


def _quote_resource(block: PromptContent) -> str:
    return f"{block.uri}:\n{block.text}" if isinstance(block, EmbeddedResource) else ""


def _new_id() -> str:
    return f"prompt-{os.urandom(6).hex()}"


def extend_prompt(prompt: Prompt, extend: Callable[[str], str]) -> Prompt:
    """Extend the text of a subagent's task, or else the prompt's own text, which is the first block."""
    if prompt.target and prompt.target.task:
        target = msgspec.structs.replace(prompt.target, task=extend(prompt.target.task))
        return msgspec.structs.replace(prompt, target=target)
    first, *more = prompt.blocks
    text = first.text if isinstance(first, TextContent) else ""
    return msgspec.structs.replace(prompt, blocks=(TextContent(extend(text)), *more))
