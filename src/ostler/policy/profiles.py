"""Security profiles and modes as rule lists; none of them overrides a deny."""

from typing import Final

import msgspec

from ostler.core.permission import Rule
from ostler.core.sessions import Mode, Profile
from ostler.policy.permission_rules import EDITING_TOOLS
from ostler.policy.presets import allow_rules


class ProfileRules(msgspec.Struct, frozen=True):
    """A security profile. `asks` turn allow into ask and `allows` turn ask into allow, for what they match.

    With `uses_whitelist`, commands on the shell whitelist are allowed. With `allows_unknown_programs`, unknown programs
    need no rule that names them.
    """

    description: str
    asks: tuple[Rule, ...] = ()
    allows: tuple[Rule, ...] = ()
    uses_whitelist: bool = False
    allows_unknown_programs: bool = False

    @property
    def only_restricts(self) -> bool:
        return bool(self.asks) and not (self.allows or self.uses_whitelist or self.allows_unknown_programs)


PROFILES: Final[dict[Profile, ProfileRules]] = {
    "paranoid": ProfileRules(
        "ask before every tool call", asks=(Rule("*", "*", "ask", "the paranoid profile asks for every tool"),)
    ),
    "balanced": ProfileRules("allow reads, ask before changes", uses_whitelist=True),
    "god_mode": ProfileRules(
        "allow everything except dangerous calls",
        allows=(Rule("*", "*", "allow", "god_mode"),),
        allows_unknown_programs=True,
    ),
}


class ModeRules(msgspec.Struct, frozen=True):
    """A mode. `allows` turn ask into allow, `allow_sandboxed` does so for commands in the sandbox.

    `agent` names the agent whose restrictions apply besides those of the active one.
    """

    description: str
    allows: tuple[Rule, ...] = ()
    allow_sandboxed: bool = False
    agent: str = ""

    @property
    def only_restricts(self) -> bool:
        return bool(self.agent) and not (self.allows or self.allow_sandboxed)


MODES: Final[dict[Mode, ModeRules]] = {
    "ask": ModeRules("ask before edits and commands"),
    "accept-edits": ModeRules(
        "workspace edits and sandboxed commands run without asking",
        allow_rules("mode accept-edits", *EDITING_TOOLS),
        allow_sandboxed=True,
    ),
    "plan": ModeRules("nothing is changed", agent="plan"),
}
