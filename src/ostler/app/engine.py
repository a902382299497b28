"""Makes the engine: the chosen model, the tools' declarations, the prompt every request begins with."""

from collections.abc import Callable, Sequence
from functools import cache

from ostler.app.model_choice import ModelChoice
from ostler.app.project_knowledge import ProjectKnowledge
from ostler.app.run_options import RunOptions
from ostler.backends.engine.backend import Engine
from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.plugins.budget import Budget
from ostler.backends.engine.plugins.context_window import CompactionSettings
from ostler.backends.engine.plugins.limits import TurnLimits
from ostler.backends.engine.plugins.plugin import BUILT_IN_AGENTS
from ostler.backends.engine.plugins.validation import ChangedFiles, ValidationChecks, no_changed_files
from ostler.backends.engine.request_prefix import ProjectPrompt
from ostler.backends.engine.role import SelectRole, no_roles
from ostler.backends.engine.system_prompt import base_prompt
from ostler.core.tools import ToolSpec
from ostler.knowledge.prompt_sections import PromptSection
from ostler.settings.effective import Settings
from ostler.settings.schema import ValidationConfig


def make_engine(
    cwd: str,
    model: ModelChoice,
    tools: Callable[[], Sequence[ToolSpec]],
    settings: Settings,
    options: RunOptions,
    select_role: SelectRole = no_roles,
    budget: Budget | None = None,
    internal_agents: InternalAgents = BUILT_IN_AGENTS,
    changed_files: ChangedFiles = no_changed_files,
) -> Engine:
    """The in-process backend for one session; `budget` is what it shares with others, `news` tells what changed."""
    shrink, knowledge = settings.config.compaction, ProjectKnowledge(cwd, settings)
    parts = cache(lambda: prompt_sections(cwd, settings, tools()))
    return Engine(
        make_model=model.make,
        tools=lambda: model.tools(tools()),
        system=lambda: model.prompt or join_sections(parts()),
        limits=turn_limits(settings, options),
        compaction=CompactionSettings(shrink.auto, shrink.prune, shrink.threshold),
        roles=select_role,
        checks=_make_checks(knowledge, settings.config.validation, changed_files),
        budget=budget,
        project=ProjectPrompt(lambda: () if model.prompt else parts(), knowledge.rules_for_path),
        internal_agents=internal_agents,
    )


def _make_checks(
    knowledge: ProjectKnowledge, validation: ValidationConfig, changed_files: ChangedFiles
) -> ValidationChecks:
    """Where nothing could be checked, nobody looks at what changed."""

    async def looked() -> Sequence[str]:
        return await changed_files() if knowledge.has_checks() else ()

    return (
        ValidationChecks(knowledge.checks, validation.timeout_ms / 1000, looked)
        if validation.enabled
        else ValidationChecks()
    )


def tree_budget(settings: Settings, options: RunOptions) -> Budget:
    """What a turn and its children may use together; a flag counts the steps of all, the settings those of each."""
    limits = turn_limits(settings, options)
    return Budget(limits.tokens, limits.cost, options.max_steps or None)


def turn_limits(settings: Settings, options: RunOptions) -> TurnLimits:
    """What a flag says, else what the settings do."""
    most = settings.config.limits
    return TurnLimits(
        steps=options.max_steps or most.steps,
        tokens=options.max_tokens or most.tokens,
        cost=options.max_cost or most.cost,
        time=options.max_time or most.time,
    )


def join_sections(sections: Sequence[PromptSection]) -> str:
    """What the engine is told first; no clock in it, so that sessions of one folder share their prefix."""
    return "\n\n".join(part.text for part in sections)


def prompt_sections(cwd: str, settings: Settings, tools: Sequence[ToolSpec] = ()) -> list[PromptSection]:
    """The same piece by piece, each with its name, its origin and its size."""
    return ProjectKnowledge(cwd, settings).prompt_sections(
        base_prompt(), with_skills=any(tool.name == "skill" for tool in tools)
    )
