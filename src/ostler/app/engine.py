"""Builds the engine backend: model, tools, system prompt, limits and checks."""

import os
from collections.abc import Callable, Sequence
from functools import cache

import msgspec

from ostler.access.active_agent import ActiveAgent
from ostler.app.project import Project
from ostler.backends.engine.backend import Engine
from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.plugins.budget import Budget
from ostler.backends.engine.plugins.context_window import CompactionSettings
from ostler.backends.engine.plugins.limits import TurnLimits
from ostler.backends.engine.plugins.plugin import BUILT_IN_AGENTS
from ostler.backends.engine.plugins.validation import ChangedFiles, FindsChecks, ValidationChecks, no_changed_files
from ostler.backends.engine.request_prefix import ProjectPrompt
from ostler.backends.engine.text_edits.text_editing import TextEditing
from ostler.core.package_data import read_text
from ostler.core.protocols import ToolRunner
from ostler.core.tools import ToolSpec
from ostler.knowledge.agent_definition import AgentRole
from ostler.knowledge.project_knowledge import ProjectKnowledge
from ostler.knowledge.prompt_sections import PromptSection
from ostler.models.model_choice import ModelChoice, embedded_name
from ostler.settings.effective import Settings
from ostler.settings.model_profiles import Profile, active_profile
from ostler.settings.run_options import RunOptions
from ostler.settings.schema import ValidationConfig
from ostler.settings.vendors import host_of

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def make_engine(
    project: Project,
    model: ModelChoice,
    tools: ToolRunner,
    options: RunOptions,
    access: ActiveAgent,
    budget: Budget,
    internal_agents: InternalAgents = BUILT_IN_AGENTS,
    changed_files: ChangedFiles = no_changed_files,
    *,
    is_child: bool = False,
) -> Engine:
    """Build the backend of one session. `budget` is shared with other sessions; `changed_files` lists edits.

    A child has no time limit of its own: that of the root session ends both.
    """
    settings, knowledge = project.settings, project.knowledge
    sections = cache(lambda: prompt_sections(project, tools.specs()))
    find_checks = knowledge.checks if settings.config.validation.enabled else _no_checks
    limits = turn_limits(settings, options)
    engine = Engine(
        make_model=model.make,
        tools=tools.specs,
        system=lambda: join_sections(sections()),
        limits=msgspec.structs.replace(limits, time=None) if is_child else limits,
        compaction=compaction_settings(settings),
        roles=access.role,
        checks=_make_checks(knowledge, settings.config.validation, changed_files, tools),
        budget=budget,
        project=ProjectPrompt(
            sections, knowledge.rules_for_path, TextEditing(project.folder, find_checks, access.may_write)
        ),
        internal_agents=internal_agents,
    )
    if hasattr(tools, "context_window"):  # it lists fewer tools for a small window
        tools.context_window = lambda: engine.context_limit
    return engine


def _no_checks(changed: Sequence[str]) -> Sequence[str]:
    return ()


def _make_checks(
    knowledge: ProjectKnowledge, validation: ValidationConfig, changed_files: ChangedFiles, tools: ToolRunner
) -> ValidationChecks:
    """Build the checks after edits; without any check the changed files are not scanned."""
    if isinstance(tools, FindsChecks):
        return ValidationChecks(ask=tools.find_checks)

    async def files_to_check() -> Sequence[str]:
        return await changed_files() if knowledge.has_checks() else ()

    return (
        ValidationChecks(knowledge.checks, validation.timeout_ms / 1000, files_to_check)
        if validation.enabled
        else ValidationChecks()
    )


def compaction_settings(settings: Settings) -> CompactionSettings:
    """Return when and how the history is shortened."""
    compaction = settings.config.compaction
    return CompactionSettings(compaction.auto, compaction.prune, compaction.threshold)


def tree_budget(settings: Settings, options: RunOptions) -> Budget:
    """Return the budget that a turn shares with its children.

    The flag limits the steps of all together; the setting limits each session on its own.
    """
    limits = turn_limits(settings, options)
    return Budget(limits.tokens, limits.cost, options.max_steps or None)


def turn_limits(settings: Settings, options: RunOptions) -> TurnLimits:
    """Return the limits of a turn; flags override the settings."""
    configured = settings.config.limits
    return TurnLimits(
        steps=options.max_steps or configured.steps,
        tokens=options.max_tokens or configured.tokens,
        cost=options.max_cost or configured.cost,
        time=options.max_time or configured.time,
    )


def join_sections(sections: Sequence[PromptSection]) -> str:
    """Return the system prompt. It has no time in it, so that sessions of a folder share a cached prefix."""
    return "\n\n".join(section.text for section in sections)


def prompt_sections(project: Project, tools: Sequence[ToolSpec] = ()) -> list[PromptSection]:
    """Return the sections of the system prompt, each with its name and origin."""
    with_skills = any(tool.name == "skill" for tool in tools)
    return project.knowledge.prompt_sections(read_text("backends/engine/system.md"), with_skills=with_skills)


def make_internal_agents(settings: Settings, options: RunOptions, role: Callable[[str], AgentRole]) -> InternalAgents:
    """Build the internal agents. A local model only makes titles if `session.titles` is `always`."""
    titles = settings.config.session.titles
    flags = options.model
    if titles == "never" or options.ephemeral or embedded_name(settings, flags):
        return InternalAgents(role)
    profile = active_profile(settings, os.environ, flags)
    return InternalAgents(role, titles == "always" or not _is_local(profile), profile.small if profile else "")


def _is_local(profile: Profile | None) -> bool:
    """Return whether the model runs on this machine, judging by its address."""
    return profile is None or not profile.base_url or host_of(profile.base_url) in LOCAL_HOSTS
