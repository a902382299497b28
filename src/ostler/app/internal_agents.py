"""Whether a model names sessions, and which: not one on this machine, which has better things to do, unless wanted."""

import os
from collections.abc import Callable

from ostler.app.model_choice import embedded_name
from ostler.app.run_options import RunOptions
from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.role import AgentRole
from ostler.settings.effective import Settings
from ostler.settings.model_profiles import Profile, active_profile
from ostler.settings.vendors import host_of

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def make_internal_agents(settings: Settings, options: RunOptions, role: Callable[[str], AgentRole]) -> InternalAgents:
    """The hidden agents of a session; a run that keeps nothing names nothing."""
    wanted = settings.config.session.titles
    flags = options.model
    if wanted == "never" or options.ephemeral or embedded_name(settings, flags):
        return InternalAgents(role)
    profile = active_profile(
        settings,
        os.environ,
        flag_model=flags.get("model", ""),
        flag_key=flags.get("api_key", ""),
        flag_base_url=flags.get("base_url", ""),
    )
    return InternalAgents(role, wanted == "always" or not _is_local(profile), profile.small if profile else "")


def _is_local(profile: Profile | None) -> bool:
    """Whether the model is on this machine, as far as its address tells."""
    return profile is None or not profile.base_url or host_of(profile.base_url) in LOCAL_HOSTS
