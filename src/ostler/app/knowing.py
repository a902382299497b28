"""Joins what the files of a workspace tell to a session: the parts of its prompt, its skills, agents and commands."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ostler.knowledge.digest import environment_part
from ostler.knowledge.parts import Part
from ostler.knowledge.rules import Loader, RulesFile, nested_rules, rules_parts
from ostler.knowledge.sources import Sources, find_sources
from ostler.settings.effective import Settings
from ostler.settings.problems import Problem
from ostler.vocabulary.seams import Tool

if TYPE_CHECKING:
    from ostler.knowledge.agent import Agent
    from ostler.knowledge.commands import Command
    from ostler.knowledge.skills import Skills


class Knowledge:
    """What the files of one workspace tell, each kind looked for when it is first wanted."""

    def __init__(self, cwd: str, settings: Settings, env: Mapping[str, str] | None = None) -> None:
        self._cwd = cwd
        self._settings = settings
        self._env = os.environ if env is None else env
        self._agents: dict[bool, dict[str, Agent]] = {}

    @property
    def notes(self) -> list[Problem]:
        """What was wrong with the files that were looked at so far."""
        return self._sources.notes

    @cached_property
    def _sources(self) -> Sources:
        return find_sources(self._cwd, self._env)

    def parts(self, base: str, *, skills: bool) -> list[Part]:
        """What every request begins with, in order; the skills only where there is a tool to load one."""
        loader = Loader()
        parts = [Part("system prompt", "Ostler", base), *rules_parts(self._sources, loader)]
        if self._settings.config.instructions:
            from ostler.knowledge.instructions import instructions_parts

            parts += instructions_parts(self._sources, self._settings.config.instructions, loader)
        index = self.skills.index() if skills else None
        if index:
            parts.append(index)
        return [*parts, environment_part(self._sources.work)]

    def nested(self, path: str) -> Sequence[RulesFile]:
        """The rules of the folders between the workspace's root and a path."""
        return nested_rules(self._sources.work, path, ())

    def problems(self, *, trusted: bool) -> list[str]:
        """What is wrong with any of the files, each said once."""
        self.agents(trusted=trusted)
        self.commands()
        self.parts("", skills=True)
        if trusted:
            from ostler.knowledge.hooks import claude_project_hooks

            claude_project_hooks(self._sources.work)
        return list(dict.fromkeys(map(str, self.notes)))

    @cached_property
    def skills(self) -> "Skills":
        """The skills that the rules do not deny."""
        from ostler.knowledge.skills import Skills, find_skills

        return Skills(find_skills(self._sources, self._settings.config.skills.paths), self._denies_skill)

    def skill_tools(self) -> list[Tool[Any]]:
        """The tool that loads a skill, where there is one to load."""
        if not self.skills.listed():
            return []
        from ostler.tools.skill import Skill

        return [Skill(lambda: self.skills)]

    def agents(self, *, trusted: bool = False) -> "dict[str, Agent]":
        """Agents by name; what a project's files say only narrows them unless it is trusted."""
        from ostler.knowledge.agents import load_agents

        if trusted not in self._agents:
            self._agents[trusted] = load_agents(self._sources, self._settings, trusted=trusted)
        return self._agents[trusted]

    def commands(self) -> "dict[str, Command]":
        """Slash commands by name."""
        from ostler.knowledge.commands import find_commands

        return find_commands(self._sources)

    def checks(self, changed: Sequence[str]) -> list[str]:
        """The commands that check some changed files."""
        from ostler.knowledge.checks import find_checks

        validation = self._settings.config.validation
        return [check.command for check in find_checks(validation, _names_in(self._cwd), self._read, changed)]

    def could_check(self) -> bool:
        """Whether any file has a check here."""
        from ostler.knowledge.checks import could_check

        return could_check(self._settings.config.validation, _names_in(self._cwd), self._read)

    def _read(self, name: str) -> str | None:
        found = self._sources.work.read(name)
        return found.text if found else None

    def _denies_skill(self, name: str) -> bool:
        from ostler.policy.presets import BASELINE
        from ostler.policy.verdict import Policy, verdict
        from ostler.vocabulary.permission import Need, Permission

        policy = Policy((*BASELINE, *self._settings.rules()), (tuple(self._settings.narrow_rules()),))
        return verdict(Permission("", (Need("skill", name),)), policy).action == "deny"


def _names_in(cwd: str) -> list[str]:
    """What lies in the root, and as paths in the folders of tests."""
    found = os.listdir(cwd)
    for folder in ("tests", "test"):
        with suppress(OSError):
            found += (f"{folder}/{name}" for name in os.listdir(os.path.join(cwd, folder)))
    return found
