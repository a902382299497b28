"""The limits of the server; times are in seconds, sizes in bytes."""

import msgspec

from ostler.core.accounts import UserLimits
from ostler.wire.frames import MAX_FRAME_BYTES
from ostler.wire.frames_shared import ServerLimits

KIB, MIB = 1024, 1024 * 1024


class ServingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a server and how long it waits."""

    heartbeat: float = 8.0
    hello_timeout: float = 10.0
    send_timeout: float = 30.0
    host_wait: float = 300.0
    call_timeout: float = 3600.0
    cancel_wait: float = 5.0
    idle_close: float = 300.0
    stream_gap: float = 60.0  # how long an SSE connection without a stream is kept
    drain: float = 4.0
    expire_days: float = 30.0
    max_frame: int = MAX_FRAME_BYTES
    max_read: int = (
        4 * MAX_FRAME_BYTES
    )  # of a WebSocket message; one over `max_frame` is refused, a larger one not read
    max_output: int = 256 * KIB
    calls_per_minute: int = 240
    bytes_per_minute: int = 64 * MIB
    messages_per_minute: int = 600
    queue: int = 32
    outbox_frames: int = 256
    outbox_bytes: int = 4 * MIB
    replay_records: int = 50_000
    connections_per_session: int = 64
    connections_per_user: int = 2000
    open_sessions_per_user: int = 1000

    def for_user(self, limits: UserLimits) -> "ServingConfig":
        """Return this with the limits of one user, as far as they are set."""
        return msgspec.structs.replace(
            self,
            open_sessions_per_user=limits.sessions or self.open_sessions_per_user,
            connections_per_user=limits.connections or self.connections_per_user,
            messages_per_minute=limits.messages_per_minute or self.messages_per_minute,
            calls_per_minute=limits.tool_calls_per_minute or self.calls_per_minute,
        )

    def limits(self) -> ServerLimits:
        """Return the limits that clients get, which have the same names here."""
        return msgspec.convert(self, ServerLimits, from_attributes=True)
