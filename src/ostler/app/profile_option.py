"""The security profile as an option of a session, for a person to change while it runs."""

from typing import cast, get_args

import msgspec

from ostler.app.agents import AgentChoice
from ostler.policy.verdict import Profile
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import TurnEnded
from ostler.vocabulary.prompt import Prompt
from ostler.vocabulary.seams import Backend, Stage
from ostler.vocabulary.sessions import Change, Choice, SessionInfo, SessionOption, SessionStart, SetOption

OPTION = "profile"
TOLD: dict[Profile, str] = {
    "paranoid": "paranoid: every tool asks",
    "balanced": "balanced: reading passes, changes ask",
    "god_mode": "god_mode: all passes but what is dangerous",
}


class ProfileOption:
    """A backend with one more option, offered where a person is. A resumed session begins with the settings' again."""

    def __init__(self, backend: Backend, choice: AgentChoice) -> None:
        self._backend = backend
        self._choice = choice

    async def open(self, start: SessionStart, stage: Stage) -> SessionInfo:
        info = await self._backend.open(start, stage)
        if not start.attended:
            return info
        choices = tuple(Choice(name, TOLD[name]) for name in get_args(Profile))
        option = SessionOption(OPTION, self._choice.profile, choices=choices)
        return msgspec.structs.replace(info, options=(*info.options, option))

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        return await self._backend.run_turn(prompt)

    async def apply(self, change: Change) -> bool:
        if not (isinstance(change, SetOption) and change.id == OPTION):
            return await self._backend.apply(change)
        if change.value not in get_args(Profile):
            raise UsageError(f"a security profile is one of {', '.join(TOLD)}, not {change.value[:40]!r}")
        self._choice.profile = cast("Profile", change.value)
        return True

    async def aclose(self) -> None:
        await self._backend.aclose()
