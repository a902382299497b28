"""Joins somebody's agent with our side of the house: its backend, and the one door with the tools it may ask for."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.app.tools import builtin_tools, make_hooks, other_tools
from ostler.backends.acp.backend import AcpBackend, Plan
from ostler.backends.acp.serving import Powers
from ostler.backends.acp.watch import Watch
from ostler.settings.effective import Settings
from ostler.tools.bash import Bash
from ostler.tools.host import LocalToolHost
from ostler.tools.protocol.approvals import Approvals, ApprovedOnce
from ostler.tools.protocol.create_terminal import CreateTerminal
from ostler.tools.protocol.foresight import Foresight
from ostler.tools.protocol.read_text_file import ReadTextFile
from ostler.tools.protocol.terminals import Terminals
from ostler.tools.protocol.write_text_file import WriteTextFile
from ostler.vocabulary.seams import Ground, Tool
from ostler.wire.jsonrpc import Mirror


class Offer(msgspec.Struct, frozen=True):
    """What the agent is offered of this side; `network` is for the commands in its terminals."""

    files: bool = True
    terminal: bool = True
    network: bool = False
    answers: Mapping[str, str] = {}


class AgentJoin:
    """One agent on one ground: the backend and the door belong together, because an allowed edit is known to both."""

    def __init__(
        self,
        plan: Plan,
        ground: Ground,
        settings: Settings,
        offer: Offer,
        watch: Watch | None = None,
        mirror: Mirror | None = None,
    ) -> None:
        security = settings.config.security
        bash = Bash(security.danger_patterns, security.blacklist_patterns)
        terminals, approvals = Terminals(), Approvals(ground)
        asked: list[Tool[Any]] = [
            ReadTextFile(),
            WriteTextFile(),
            CreateTerminal(terminals, bash, network=offer.network),
        ]
        hooks = make_hooks(settings, ground.root)
        host = LocalToolHost(builtin_tools(settings), ground, lambda: [*other_tools(), *asked], around=hooks)
        powers = Powers(
            Foresight(ground, bash),
            terminals,
            approvals.note,
            approvals.forget,
            offer.files,
            offer.terminal,
            offer.answers,
        )
        self.name = f"acp:{plan.launch.name}"
        self.tools = ApprovedOnce(host, approvals)
        self.backend = AcpBackend(plan, powers, watch, mirror)
