"""A project: a folder with its settings and the definitions in its files, each read once."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ostler.knowledge.agent_definition import AgentDefinition
from ostler.knowledge.project_knowledge import BuiltinKnowledge, ProjectKnowledge
from ostler.knowledge.prompt_sections import PromptSection
from ostler.knowledge.trusted_settings import count_untrusted, find_trust_store, load_settings
from ostler.session.masking import MaskSecrets
from ostler.settings.effective import Settings
from ostler.settings.grants import ProjectGrants
from ostler.settings.home import project_id
from ostler.settings.known_secrets import secrets_in_use
from ostler.settings.project_paths import project_folder, project_grants, workspace_path
from ostler.text.secret_masker import SecretMasker

if TYPE_CHECKING:
    from ostler.hooks.hook_runner import HookRunner
    from ostler.interaction.prompt_builder import PromptBuilder
    from ostler.mcp.tool_source import McpToolSource

MAX_PROBLEMS_SHOWN = 8


class FolderElsewhere(msgspec.Struct, frozen=True):
    """What a folder on another machine defines: sections of the system prompt, and agents besides the built-in ones.

    Its sessions belong to the project `project_id`, by default to one of the folder's path.
    """

    sections: Sequence[PromptSection] = ()
    agents: Mapping[str, AgentDefinition] = MappingProxyType({})
    project_id: str = ""


NOTHING_ELSEWHERE = FolderElsewhere()


class Project:
    """The folder of a session with everything that is configured for it."""

    def __init__(self, root: str, settings: Settings, knowledge: ProjectKnowledge, project_id: str) -> None:
        self.id = project_id
        self.root = root
        self.folder = root  # empty if it is on another machine
        self.path = Path(root)
        self.settings = settings
        self.knowledge = knowledge

    @classmethod
    def load(cls, cwd: str | Path, *, trust: bool = False) -> "Project":
        """Load the settings of a folder. Raises `UsageError` if there is no such folder."""
        path = workspace_path(str(cwd))
        return cls.with_settings(path, load_settings(path, trust=trust))

    @classmethod
    def with_settings(cls, path: Path, settings: Settings) -> "Project":
        """Return the project of a folder whose settings were already loaded."""
        return cls(str(path), settings, ProjectKnowledge(str(path), settings), project_id(path))

    @classmethod
    def elsewhere(cls, root: str, folder: FolderElsewhere = NOTHING_ELSEWHERE) -> "Project":
        """Return the project of a folder on another machine, with default settings. No folder is read."""
        settings = Settings.from_layers(())
        knowledge = BuiltinKnowledge(root, settings, folder.sections, folder.agents)
        name = folder.project_id or f"elsewhere-{sha256(root.encode()).hexdigest()[:16]}"
        project = cls(root, settings, knowledge, name)
        project.folder = ""
        return project

    def for_agent_zero(self) -> "Project":
        """Return this project with the settings of sessions with Agent Zero."""
        return Project.with_settings(self.path, self.settings.for_agent_zero())

    @property
    def agents(self) -> Mapping[str, AgentDefinition]:
        return self.knowledge.agents

    def task_agents(self) -> dict[str, str]:
        """Return the agents that accept tasks with their descriptions; empty if subagents are disabled."""
        if not self.settings.config.limits.subagents:
            return {}
        return {agent.name: agent.description for agent in self.agents.values() if agent.accepts_tasks}

    @cached_property
    def hooks(self) -> "HookRunner | None":
        """The runner of the configured hooks; None if there are none, here or in a trusted folder around or inside."""
        if not self.folder:
            return None
        hooks, trust = self.knowledge.hooks(), find_trust_store()
        if not hooks and not (trust and trust.has_hooks_nearby(self.path)):
            return None
        from ostler.hooks.hook_runner import HookRunner

        return HookRunner(hooks, self.knowledge.workspace_folder, trust)

    def prompt_builder(self, *, allow_outside: bool, mcp: "McpToolSource | None" = None) -> "PromptBuilder":
        """Return the builder of prompts; with `allow_outside` mentioned files may be outside the workspace.

        `mcp` has the servers whose resources can be mentioned and whose prompts are commands.
        """
        from ostler.interaction.prompt_builder import PromptBuilder

        return PromptBuilder(
            self.path,
            self.settings,
            self.knowledge,
            allow_outside=allow_outside,
            resources=mcp.resources if mcp else None,
            server_prompts=mcp.prompts if mcp else None,
        )

    def data_folder(self) -> Path:
        """Return the folder where Ostler stores data about this project."""
        return project_folder(self.path)

    def grants(self) -> ProjectGrants:
        """Return the store of the standing rules that the user set for this project."""
        return project_grants(self.path)

    def mask(self, *extra_secrets: str) -> MaskSecrets:
        """Return a function that masks the secrets in use."""
        return MaskSecrets(secrets_in_use(self.settings, os.environ, *extra_secrets))

    def secret_masker(self) -> SecretMasker:
        """Return what masks the secrets in use in text that is no event."""
        return SecretMasker(secrets_in_use(self.settings, os.environ))

    def report_problems(self, notify: Callable[[str], None]) -> None:
        """Report what is wrong in the settings and definitions, and what waits for trust."""
        settings = self.settings
        for note in (*settings.notes, *map(str, settings.problems)):
            notify(note)
        if count := count_untrusted(self.path, settings):
            notify(f"{count} project settings are ignored until you trust them: review them with `ostler trust`")
        problems = self.knowledge.problems()
        for problem in problems[:MAX_PROBLEMS_SHOWN]:
            notify(problem)
        if len(problems) > MAX_PROBLEMS_SHOWN:
            notify(f"and {len(problems) - MAX_PROBLEMS_SHOWN} more problems in this workspace's configuration files")
