"""Lets the house open a session with somebody's agent: `acp:NAME` as the backend of any face."""

import os
from collections.abc import Mapping
from pathlib import Path

from ostler import __version__
from ostler.app.acp_agent_config import find_agent
from ostler.app.acp_backend import AcpParts, OfferedServices
from ostler.backends.acp.backend import AcpSessionPlan
from ostler.backends.acp.process import Launch
from ostler.core.protocols import Workspace
from ostler.core.sessions import OpenSessionRequest
from ostler.settings.effective import Settings

PREFIX = "acp:"
_AGENT_OPTIONS = ("model", "thinking")


def make_acp_parts(
    request: OpenSessionRequest, cwd: Path, workspace: Workspace, settings: Settings, model_flags: Mapping[str, str]
) -> AcpParts:
    """The agent that is named, or the first that is listed for `acp:` alone.

    A model that the command line names is one of the agent's, for it has no other.
    """
    found = find_agent(request.backend.removeprefix(PREFIX), "", cwd, settings)
    entry = found.entry
    launch = Launch(entry.command, entry.args, found.environment(os.environ), str(cwd), found.name)
    plan = AcpSessionPlan(
        launch,
        __version__,
        found.mcp_servers,
        request.directories,
        fork=request.fork,
        supports_elicitation=request.interactive,
        required_options=tuple((name, model_flags[name]) for name in _AGENT_OPTIONS if model_flags.get(name)),
    )
    return AcpParts(plan, workspace, settings, OfferedServices())
