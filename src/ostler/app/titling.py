"""Whether a model names sessions, and which: not one on this machine, which has better things to do, unless wanted."""

import os
from collections.abc import Callable

from ostler.app.models import embedded_name
from ostler.app.options import RunOptions
from ostler.backends.engine.helpers import Helpers
from ostler.backends.engine.role import Role
from ostler.settings.effective import Settings
from ostler.settings.hosts import host_of
from ostler.settings.profiles import Profile, active

HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def helpers(settings: Settings, options: RunOptions, role: Callable[[str], Role]) -> Helpers:
    """The hidden agents of a session; a run that keeps nothing names nothing."""
    wanted = settings.config.session.titles
    flags = options.model
    if wanted == "never" or options.ephemeral or embedded_name(settings, flags):
        return Helpers(role)
    profile = active(
        settings,
        os.environ,
        flag_model=flags.get("model", ""),
        flag_key=flags.get("api_key", ""),
        flag_base_url=flags.get("base_url", ""),
    )
    return Helpers(role, wanted == "always" or not _local(profile), profile.small if profile else "")


def _local(profile: Profile | None) -> bool:
    """Whether the model is on this machine, as far as its address tells."""
    return profile is None or not profile.base_url or host_of(profile.base_url) in HERE
