"""The models that could be chosen: those of the endpoint in use, else those of the servers on this machine."""

import os
from collections.abc import Mapping, Sequence

from ostler.app.models import connect
from ostler.settings.effective import Settings
from ostler.settings.profiles import active


async def models_known(settings: Settings, flags: Mapping[str, str]) -> Sequence[str]:
    """Their names, as the servers tell them."""
    profile = active(
        settings,
        os.environ,
        flag_model=flags.get("model", ""),
        flag_key=flags.get("api_key", ""),
        flag_base_url=flags.get("base_url", ""),
    )
    if profile is None or not profile.base_url:
        from ostler.models.find_local import find_local_servers

        return [name for server in await find_local_servers() for name in server.models]
    client = connect(profile, "unnamed")
    try:
        return [entry.id for entry in await client.models()]
    finally:
        await client.aclose()
