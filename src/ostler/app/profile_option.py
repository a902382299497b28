"""Adds the security profile to a backend's session options."""

from typing import cast, get_args

import msgspec

from ostler.app.active_agent import ActiveAgent
from ostler.core.errors import UsageError
from ostler.core.events import TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import Backend, BackendContext
from ostler.core.sessions import OptionChoice, SessionChange, SessionInfo, SessionOption, SessionStart, SetOption
from ostler.policy.verdict import Profile

OPTION = "profile"
PROFILE_LABELS: dict[Profile, str] = {
    "paranoid": "paranoid: ask before every tool call",
    "balanced": "balanced: allow reads, ask before changes",
    "god_mode": "god_mode: allow everything except dangerous calls",
}


class ProfileOptionBackend:
    """Wraps a backend and adds the option in interactive sessions. Resuming resets it to the settings."""

    def __init__(self, backend: Backend, active_agent: ActiveAgent) -> None:
        self._backend = backend
        self._active_agent = active_agent

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        info = await self._backend.open(start, context)
        if not start.interactive:
            return info
        choices = tuple(OptionChoice(name, PROFILE_LABELS[name]) for name in get_args(Profile))
        option = SessionOption(OPTION, self._active_agent.profile, choices=choices)
        return msgspec.structs.replace(info, options=(*info.options, option))

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        return await self._backend.run_turn(prompt)

    async def apply(self, change: SessionChange) -> bool:
        if not (isinstance(change, SetOption) and change.id == OPTION):
            return await self._backend.apply(change)
        if change.value not in get_args(Profile):
            raise UsageError(
                f"unknown security profile {change.value[:40]!r}", hint=f"available: {', '.join(PROFILE_LABELS)}"
            )
        self._active_agent.profile = cast("Profile", change.value)
        return True

    async def aclose(self) -> None:
        await self._backend.aclose()
