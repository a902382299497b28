"""Makes the engine: the chosen model, the tools' declarations, the prompt every request begins with."""

from collections.abc import Callable, Sequence
from functools import cache

from ostler.app.knowing import Knowledge
from ostler.app.models import ModelChoice
from ostler.app.options import RunOptions
from ostler.backends.engine.backend import Engine
from ostler.backends.engine.guests.budget import Budget
from ostler.backends.engine.guests.guest import BUILT_IN
from ostler.backends.engine.guests.limits import Limits
from ostler.backends.engine.guests.shrink import Shrinking
from ostler.backends.engine.guests.validate import Checks, News, no_news
from ostler.backends.engine.helpers import Helpers
from ostler.backends.engine.prefix import Surroundings
from ostler.backends.engine.role import TakeRole, no_roles
from ostler.backends.engine.system import base_prompt
from ostler.knowledge.parts import Part
from ostler.settings.effective import Settings
from ostler.settings.schema import Validation
from ostler.vocabulary.tools import ToolSpec


def make_engine(
    cwd: str,
    model: ModelChoice,
    tools: Callable[[], Sequence[ToolSpec]],
    settings: Settings,
    options: RunOptions,
    roles: TakeRole = no_roles,
    budget: Budget | None = None,
    helpers: Helpers = BUILT_IN,
    news: News = no_news,
) -> Engine:
    """The in-process backend for one session; `budget` is what it shares with others, `news` tells what changed."""
    shrink, knowledge = settings.config.compaction, Knowledge(cwd, settings)
    parts = cache(lambda: prompt_parts(cwd, settings, tools()))
    return Engine(
        make_model=model.make,
        tools=lambda: model.tools(tools()),
        system=lambda: model.prompt or joined(parts()),
        limits=turn_limits(settings, options),
        shrinking=Shrinking(shrink.auto, shrink.prune, shrink.threshold),
        roles=roles,
        checks=_checks(knowledge, settings.config.validation, news),
        budget=budget,
        around=Surroundings(lambda: () if model.prompt else parts(), knowledge.nested),
        helpers=helpers,
    )


def _checks(knowledge: Knowledge, validation: Validation, news: News) -> Checks:
    """Where nothing could be checked, nobody looks at what changed."""

    async def looked() -> Sequence[str]:
        return await news() if knowledge.could_check() else ()

    return Checks(knowledge.checks, validation.timeout_ms / 1000, looked) if validation.enabled else Checks()


def tree_budget(settings: Settings, options: RunOptions) -> Budget:
    """What a turn and its children may use together; a flag counts the steps of all, the settings those of each."""
    limits = turn_limits(settings, options)
    return Budget(limits.tokens, limits.cost, options.max_steps or None)


def turn_limits(settings: Settings, options: RunOptions) -> Limits:
    """What a flag says, else what the settings do."""
    most = settings.config.limits
    return Limits(
        steps=options.max_steps or most.steps,
        tokens=options.max_tokens or most.tokens,
        cost=options.max_cost or most.cost,
        time=options.max_time or most.time,
    )


def joined(parts: Sequence[Part]) -> str:
    """What the engine is told first; no clock in it, so that sessions of one folder share their prefix."""
    return "\n\n".join(part.text for part in parts)


def prompt_parts(cwd: str, settings: Settings, tools: Sequence[ToolSpec] = ()) -> list[Part]:
    """The same piece by piece, each with its name, its origin and its size."""
    return Knowledge(cwd, settings).parts(base_prompt(), skills=any(tool.name == "skill" for tool in tools))
