"""Loads what the workspace's files define: prompt sections, skills, agents, commands, checks."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from ostler.knowledge.environment_section import make_environment_section
from ostler.knowledge.prompt_sections import PromptSection
from ostler.knowledge.rules_files import RulesFile, RulesFileLoader, nested_rules, rules_sections
from ostler.knowledge.source_folder import SourceFolder
from ostler.knowledge.source_folders import SourceFolders, find_sources
from ostler.settings.effective import Settings
from ostler.settings.problems import Problem

if TYPE_CHECKING:
    from ostler.knowledge.agent_definition import AgentDefinition
    from ostler.knowledge.custom_commands import CustomCommand
    from ostler.knowledge.hooks import HookSpec
    from ostler.knowledge.skills import SkillCatalogue


class ProjectKnowledge:
    """The definitions in the files of one workspace; each kind is loaded on first use."""

    def __init__(self, cwd: str, settings: Settings, env: Mapping[str, str] | None = None) -> None:
        self._cwd = cwd
        self._settings = settings
        self._env = os.environ if env is None else env

    @property
    def warnings(self) -> list[Problem]:
        """The problems in the files that were read so far."""
        return self._sources.notes

    @cached_property
    def _sources(self) -> SourceFolders:
        return find_sources(self._cwd, self._env)

    def prompt_sections(self, base_prompt: str, *, with_skills: bool) -> list[PromptSection]:
        """Return the sections of the system prompt in order; skills only if there is a tool to load them."""
        loader = RulesFileLoader()
        sections = [PromptSection("system prompt", "Ostler", base_prompt), *rules_sections(self._sources, loader)]
        if self._settings.config.instructions:
            from ostler.knowledge.instruction_files import instruction_sections

            sections += instruction_sections(self._sources, self._settings.config.instructions, loader)
        index = self.skills.index_section() if with_skills else None
        if index:
            sections.append(index)
        return [*sections, make_environment_section(self._sources.workspace)]

    def rules_for_path(self, path: str) -> Sequence[RulesFile]:
        """Return the rules files of the folders between the workspace's root and a path."""
        return nested_rules(self._sources.workspace, path)

    def problems(self) -> list[str]:
        """Read all files and return their problems, without duplicates."""
        _ = self.agents
        self.commands()
        self.prompt_sections("", with_skills=True)
        if self._settings.trusted:
            from ostler.knowledge.hooks import claude_project_hooks

            claude_project_hooks(self._sources.workspace)
        return list(dict.fromkeys(map(str, self.warnings)))

    @cached_property
    def skills(self) -> "SkillCatalogue":
        """The skills that the rules do not deny."""
        from ostler.knowledge.skills import SkillCatalogue, find_skills

        return SkillCatalogue(find_skills(self._sources, self._settings.config.skills.paths), self._is_skill_denied)

    def has_skills(self) -> bool:
        """Return whether there is a skill to load."""
        return bool(self.skills.list_skills())

    @cached_property
    def agents(self) -> "Mapping[str, AgentDefinition]":
        """The agents by name. Untrusted project files can only restrict them."""
        from ostler.knowledge.agent_loader import load_agents

        return load_agents(self._sources, self._settings, trusted=self._settings.trusted)

    def commands(self) -> "dict[str, CustomCommand]":
        """Return the custom slash commands by name."""
        from ostler.knowledge.custom_commands import find_commands

        return find_commands(self._sources)

    def hooks(self) -> "list[HookSpec]":
        """Return the hooks of the settings and, in a trusted project, those of Claude Code."""
        from ostler.knowledge.hooks import claude_project_hooks, configured_hooks

        sources = self._sources
        is_allowed = self._settings.trusted and not sources.workspace_is_home
        return [*configured_hooks(self._settings), *(claude_project_hooks(sources.workspace) if is_allowed else ())]

    @property
    def workspace_folder(self) -> SourceFolder:
        return self._sources.workspace

    def checks(self, changed: Sequence[str]) -> list[str]:
        """Return the commands that check the changed files."""
        from ostler.knowledge.checks import find_checks

        validation = self._settings.config.validation
        return find_checks(validation, _root_file_names(self._cwd), self._read, changed)

    def has_checks(self) -> bool:
        """Return whether there is a check for any file."""
        from ostler.knowledge.checks import has_checks

        return has_checks(self._settings.config.validation, _root_file_names(self._cwd), self._read)

    def _read(self, name: str) -> str | None:
        file = self._sources.workspace.read(name)
        return file.text if file else None

    def _is_skill_denied(self, name: str) -> bool:
        from ostler.core.permission import Need, Permission
        from ostler.policy.presets import BASELINE
        from ostler.policy.verdict import Policy, evaluate_permission

        policy = Policy((*BASELINE, *self._settings.rules()), (tuple(self._settings.restricting_rules()),))
        return evaluate_permission(Permission("", (Need("skill", name),)), policy).action == "deny"


class BuiltinKnowledge(ProjectKnowledge):
    """Only what is built in, for a project whose files are on another machine. Reads no folder.

    `sections` of the system prompt are what the other machine made from its files. `agents` are those that it defines;
    they replace the built-in ones of the same name, except the hidden ones.
    """

    def __init__(
        self,
        cwd: str,
        settings: Settings,
        sections: Sequence[PromptSection] = (),
        agents: "Mapping[str, AgentDefinition] | None" = None,
    ) -> None:
        super().__init__(cwd, settings)
        self._sections = sections
        self._agents = agents or {}

    def prompt_sections(self, base_prompt: str, *, with_skills: bool) -> list[PromptSection]:
        return [PromptSection("system prompt", "Ostler", base_prompt), *self._sections]

    def rules_for_path(self, path: str) -> Sequence[RulesFile]:
        return ()

    def problems(self) -> list[str]:
        return []

    def has_skills(self) -> bool:
        return False

    @cached_property
    def agents(self) -> "Mapping[str, AgentDefinition]":
        from ostler.knowledge.builtin_agents import builtin_agents

        builtin = builtin_agents()
        hidden = {name for name, agent in builtin.items() if agent.hidden}
        return builtin | {name: agent for name, agent in self._agents.items() if name not in hidden}

    def commands(self) -> "dict[str, CustomCommand]":
        return {}

    def hooks(self) -> "list[HookSpec]":
        return []

    def checks(self, changed: Sequence[str]) -> list[str]:
        return []

    def has_checks(self) -> bool:
        return False


def _root_file_names(cwd: str) -> list[str]:
    """Return the names in the root folder and the paths in its test folders."""
    names = os.listdir(cwd)
    for folder in ("tests", "test"):
        with suppress(OSError):
            names += (f"{folder}/{name}" for name in os.listdir(os.path.join(cwd, folder)))
    return names
