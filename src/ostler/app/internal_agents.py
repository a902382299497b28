"""Decides whether and with which model sessions get titles and summaries."""

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
    """Build the internal agents. A local model only makes titles if `session.titles` is `always`."""
    titles = settings.config.session.titles
    flags = options.model
    if titles == "never" or options.ephemeral or embedded_name(settings, flags):
        return InternalAgents(role)
    profile = active_profile(
        settings,
        os.environ,
        flag_model=flags.get("model", ""),
        flag_key=flags.get("api_key", ""),
        flag_base_url=flags.get("base_url", ""),
    )
    return InternalAgents(role, titles == "always" or not _is_local(profile), profile.small if profile else "")


def _is_local(profile: Profile | None) -> bool:
    """Return whether the model runs on this machine, judging by its address."""
    return profile is None or not profile.base_url or host_of(profile.base_url) in LOCAL_HOSTS
