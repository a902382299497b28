"""Settings of a conversation over the connector."""

import msgspec

from ostler.backends.agent_zero.local_calls import MAX_CALLS


class ConnectorSettings(msgspec.Struct, frozen=True):
    """Settings of the connector. `timeout` limits a silence and `max_wait` a turn; 0 means no limit.

    `other_hosts` are machines besides `host` to which the user agreed.
    """

    host: str
    version: str = ""
    allow_shell: bool = False
    project: str = ""
    agent_profile: str = ""
    timeout: float = 0.0
    keepalive: float = 5.0
    max_wait: float = 0.0
    other_hosts: tuple[str, ...] = ()
    max_operations: int = MAX_CALLS  # of a turn
    retry_delays: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
