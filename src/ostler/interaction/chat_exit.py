"""How a chat with one session ends."""

import msgspec


class ChatExit(msgspec.Struct, frozen=True):
    """How a chat ended. Without a status, continue with `session`, or with a new one if it is empty."""

    status: int | None
    session: str = ""
