"""Lists the models of the active endpoint, or of the local servers."""

import os
from collections.abc import Mapping, Sequence

from ostler.core.errors import UsageError
from ostler.models.model_choice import make_http_client
from ostler.settings.effective import Settings
from ostler.settings.model_profiles import Profile, active_profile


async def list_models(settings: Settings, flags: Mapping[str, str]) -> Sequence[str]:
    """Return the model names that the servers report."""
    profile = _find_active(settings, flags)
    if profile is None or not profile.base_url:
        from ostler.models.local_servers import find_local_servers

        return [name for server in await find_local_servers() for name in server.models]
    client = make_http_client(profile, "unnamed")
    try:
        return [entry.id for entry in await client.models()]
    finally:
        await client.aclose()


def active_name(settings: Settings, flags: Mapping[str, str]) -> str:
    """Return the name of the profile that flags and settings select, or an empty string."""
    try:
        profile = _find_active(settings, flags)
    except UsageError:
        return ""
    return profile.name if profile else ""


def _find_active(settings: Settings, flags: Mapping[str, str]) -> Profile | None:
    return active_profile(
        settings,
        os.environ,
        flag_model=flags.get("model", ""),
        flag_key=flags.get("api_key", ""),
        flag_base_url=flags.get("base_url", ""),
    )
