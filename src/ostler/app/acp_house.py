"""Lets the house open a session with somebody's agent: `acp:NAME` as the backend of any face."""

import os
from collections.abc import Mapping
from pathlib import Path

from ostler import __version__
from ostler.app.acp_agents import find_agent
from ostler.app.acp_backend import AgentJoin, Offer
from ostler.backends.acp.backend import Plan
from ostler.backends.acp.process import Launch
from ostler.settings.effective import Settings
from ostler.vocabulary.seams import Ground
from ostler.vocabulary.sessions import Opening

PREFIX = "acp:"
_ITS_OWN = ("model", "thinking")


def join_agent(
    opening: Opening, cwd: Path, ground: Ground, settings: Settings, model_flags: Mapping[str, str]
) -> AgentJoin:
    """The agent that is named, or the first that is listed for `acp:` alone.

    A model that the command line names is one of the agent's, for it has no other.
    """
    found = find_agent(opening.backend.removeprefix(PREFIX), "", cwd, settings)
    entry = found.entry
    launch = Launch(entry.command, entry.args, found.environment(os.environ), str(cwd), found.name)
    plan = Plan(
        launch,
        __version__,
        found.mcp_servers,
        opening.directories,
        fork=opening.fork,
        elicits=opening.attended,
        wanted=tuple((name, model_flags[name]) for name in _ITS_OWN if model_flags.get(name)),
    )
    return AgentJoin(plan, ground, settings, Offer())
