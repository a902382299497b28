"""The kinds of backends by name, for decisions before a session is open."""

import msgspec

ACP_PREFIX = "acp:"
ZERO = "agent_zero"
REMOTE = "remote"


class BackendKind(msgspec.Struct, frozen=True):
    """What is known about a backend before it is made; the others are in its `SessionInfo`.

    `runs_own_tools` as there. With `has_own_history`, a resumed session needs the same backend. With `takes_model`, the
    model flags replace the options of a resumed session. With `uses_zero_settings`, `connection` replaces parts of the
    settings. With `is_elsewhere` another machine asks for the calls: it is offered more tools, and may delete nothing
    unless the user's settings allow it. `title` is what messages call it, if that is not its name.
    """

    runs_own_tools: bool = False
    has_own_history: bool = False
    takes_model: bool = False
    uses_zero_settings: bool = False
    is_elsewhere: bool = False
    title: str = ""


_KINDS = {
    "engine": BackendKind(takes_model=True),
    "acp": BackendKind(runs_own_tools=True, has_own_history=True),
    ZERO: BackendKind(has_own_history=True, uses_zero_settings=True, title="Agent Zero"),
    REMOTE: BackendKind(has_own_history=True, takes_model=True, is_elsewhere=True),
}


def backend_kind(name: str) -> BackendKind:
    """Return the traits of a backend by its name, such as `engine` or `acp:NAME`."""
    return _KINDS.get(name.partition(":")[0], BackendKind())
