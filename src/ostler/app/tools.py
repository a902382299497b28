"""Makes the one door with the tools behind it."""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ostler.settings.effective import Settings
from ostler.tools.host import LocalToolHost
from ostler.vocabulary.seams import Ground, Tool

if TYPE_CHECKING:
    from ostler.app.hooks import Hooks


def make_tools(
    ground: Ground,
    settings: Settings,
    offers: Callable[[str], bool] = lambda tool: True,
    takers: Mapping[str, str] = MappingProxyType({}),
) -> LocalToolHost:
    """The built-in tools on a ground: some a model is told of, all of them at hand. `takers` take tasks."""
    from ostler.app.knowing import Knowledge

    tools = [*builtin_tools(settings), *Knowledge(ground.root, settings).skill_tools()]
    if takers:
        from ostler.tools.task import Task

        tools.append(Task(takers))
    return LocalToolHost(tools, ground, other_tools, offers, make_hooks(settings, ground.root))


def make_hooks(settings: Settings, cwd: str) -> "Hooks | None":
    """The person's programs around tools and turns, where there are any."""
    from ostler.knowledge.hooks import claude_project_hooks, configured_hooks
    from ostler.knowledge.sources import find_sources

    sources = find_sources(cwd, os.environ)
    foreign = claude_project_hooks(sources.work) if settings.trusted and not sources.at_home else []
    hooks = [*configured_hooks(settings), *foreign]
    if not hooks:
        return None
    from ostler.app.hooks import Hooks

    return Hooks(hooks, sources.work)


def builtin_tools(settings: Settings) -> list[Tool[Any]]:
    """Every tool a model is offered; those that a shell would make needless only where there is none."""
    from ostler.tools.edit import Edit
    from ostler.tools.glob import Glob
    from ostler.tools.grep import Grep
    from ostler.tools.list import List
    from ostler.tools.patch import Patch
    from ostler.tools.read import Read
    from ostler.tools.todoread import TodoRead
    from ostler.tools.todowrite import TodoWrite
    from ostler.tools.write import Write

    tools: list[Tool[Any]] = [Read(), List(), Grep(), Glob(), Write(), Edit(), Patch(), TodoRead(), TodoWrite()]
    security = settings.config.security
    if security.allow_shell is False:
        return [*tools, *instead_of_a_shell()]
    from ostler.tools.bash import Bash

    return [*tools, Bash(security.danger_patterns, security.blacklist_patterns)]


def instead_of_a_shell() -> list[Tool[Any]]:
    """What a model would else do by commands."""
    from ostler.tools.git_blame import GitBlame
    from ostler.tools.git_diff import GitDiff
    from ostler.tools.git_log import GitLog
    from ostler.tools.git_show import GitShow
    from ostler.tools.git_status import GitStatus
    from ostler.tools.mkdir import Mkdir
    from ostler.tools.stat import Stat
    from ostler.tools.write_chunk import WriteChunk

    return [Stat(), Mkdir(), WriteChunk(), GitStatus(), GitDiff(), GitLog(), GitShow(), GitBlame()]


def other_tools() -> list[Tool[Any]]:
    """Tools for whoever knows them by name; `task` and `skill` are offered where there is something for them to do."""
    from ostler.knowledge.skills import Skills
    from ostler.tools.skill import Skill
    from ostler.tools.task import Task

    return [*instead_of_a_shell(), Task(), Skill(lambda: Skills((), lambda name: False))]
