"""Keeps the model's state after the system prompt on disk, so that a new process need not read it again."""

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from ostler.http.client import HttpClient
from ostler.http.dialer import Dialer
from ostler.models.base_url import parse_base_url
from ostler.models.context_windows import ServerApi
from ostler.models.embedded.runtime import LOCK_FILE
from ostler.models.embedded.server import CONTEXT_WINDOW, RunningServer

MAX_FILES = 8
READ_SECONDS = 120.0


class PrefixCache:
    """Files in a folder, one for each model file and system prompt. They contain nothing of a conversation."""

    def __init__(self, folder: Path, weights: Path) -> None:
        self._folder = folder
        self._weights = weights

    async def prepare(self, server: RunningServer, system: str) -> None:
        """Restore the state after the system prompt, or compute and save it. Failures only cost time later."""
        base = parse_base_url(server.base_url, "openai")
        http = HttpClient(Dialer(base.origin, timeout=10.0))
        headers = (("content-type", "application/json"), ("authorization", f"Bearer {server.api_key}"))
        api = ServerApi(http, headers, READ_SECONDS)
        name = self._file_name(system)
        try:
            if (self._folder / name).is_file() and await api.post("/slots/0?action=restore", {"filename": name}):
                return
            messages = [{"role": "system", "content": system}]
            if await api.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1, "cache_prompt": True}):
                self._remove_old()
                await api.post("/slots/0?action=save", {"filename": name})
        finally:
            await http.aclose()

    def _file_name(self, system: str) -> str:
        with suppress(OSError):
            found = self._weights.stat()
            parts: Sequence[object] = (self._weights, found.st_size, found.st_mtime_ns, CONTEXT_WINDOW, system)
            text = "\n".join(map(str, parts)).encode() + LOCK_FILE.read_bytes()
            return f"{sha256(text).hexdigest()[:24]}.state"
        return "unknown.state"

    def _remove_old(self) -> None:
        """Remove the oldest files, so that the folder stays small."""
        with suppress(OSError):
            files = sorted(self._folder.glob("*.state"), key=os.path.getmtime, reverse=True)
            for file in files[MAX_FILES - 1 :]:
                file.unlink()
