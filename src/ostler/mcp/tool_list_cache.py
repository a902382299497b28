"""Stores the last known tools of each server, so that a server need not be started to list them."""

import time
from pathlib import Path

import msgspec

from ostler.settings.private_file import read_private, replace_private
from ostler.wire.mcp import Era, ServerPrompt, ServerResource, ServerTool

MAX_FRESH_SECONDS = 24 * 3600.0


class ServerOffers(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server offers besides tools."""

    prompts: tuple[ServerPrompt, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    has_resources: bool = False


class CachedServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server's declarations at its last start. `valid_seconds` is how long they are valid; 0 if it did not say."""

    era: Era
    tools: tuple[ServerTool, ...] = ()
    instructions: str = ""
    saved_at: float = 0
    offers: ServerOffers = ServerOffers()
    valid_seconds: float = 0

    @property
    def is_fresh(self) -> bool:
        limit = min(self.valid_seconds or MAX_FRESH_SECONDS, MAX_FRESH_SECONDS)
        return 0 <= time.time() - self.saved_at < limit


class ToolListCache:
    """One file for each server configuration in a folder. A file that cannot be used is ignored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, digest: str) -> CachedServer | None:
        try:
            data = read_private(self._folder / f"{digest}.json")
            return msgspec.json.decode(data, type=CachedServer) if data else None
        except (OSError, ValueError, msgspec.DecodeError, RecursionError):
            return None

    def save(self, digest: str, server: CachedServer) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_private(self._folder / f"{digest}.json", msgspec.json.encode(server))
        except OSError:
            return  # the cache only saves time
