"""A model's context window: from its server, else by its name."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.core.errors import BackendError
from ostler.http.client import Headers, HttpClient
from ostler.http.url import BaseUrl
from ostler.models.loose_json import LooseJsonError, read_json, write_json
from ostler.models.server_models import (
    MAX_LIST_BYTES,
    ModelEntry,
    list_models,
    parse_entries,
    reported_parameters,
    valid_window,
)

DEFAULT_WINDOW = 32_768

_LOAD_TIMEOUT = 120.0
_WINDOWS = {
    "gpt-5": 400_000,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "gpt-oss": 131_072,
    "o3": 200_000,
    "o4": 200_000,
    "claude": 200_000,
    "gemini": 1_048_576,
    "qwen3-coder": 262_144,
    "qwen3": 40_960,
    "qwen2.5": 32_768,
    "deepseek": 128_000,
    "kimi-k2": 131_072,
    "minimax-m2": 196_608,
    "glm-4": 128_000,
    "devstral": 131_072,
    "llama-3": 131_072,
    "llama3": 131_072,
}


class ContextWindow(msgspec.Struct, frozen=True):
    """A window in tokens. If `is_enforced`, the server runs the model with it; else it is the model's maximum.

    `parameters` is the size of the model, or 0 if the server does not report it.
    """

    size: int
    is_enforced: bool
    parameters: int = 0


def window_by_name(model: str) -> int:
    """Return the window of the model family in the name, or `DEFAULT_WINDOW`."""
    name = model.lower().rpartition("/")[2]
    prefixes = [prefix for prefix in _WINDOWS if name.startswith(prefix)]
    return _WINDOWS[max(prefixes, key=len)] if prefixes else DEFAULT_WINDOW


async def fetch_window(
    http: HttpClient, base_url: BaseUrl, model: str, headers: Headers = (), *, requested: int = 0, timeout: float = 2.0
) -> ContextWindow | None:
    """Return the window of `model` on its server, or None if the server does not report it.

    LM Studio loads the model with the `requested` window if it is not loaded yet.
    """
    try:
        entries = await list_models(http, base_url, headers, timeout=timeout)
    except BackendError:
        return None
    entry = next((entry for entry in entries if entry.id == model), ModelEntry(model))
    window = await _reported_window(ServerApi(http, headers, timeout), entry, entries, requested)
    if window is None:
        return (
            ContextWindow(window_by_name(model), is_enforced=False, parameters=entry.parameters)
            if entry.parameters
            else None
        )
    return msgspec.structs.replace(window, parameters=window.parameters or entry.parameters)


async def _reported_window(
    server: "ServerApi", entry: ModelEntry, entries: Sequence[ModelEntry], requested: int
) -> ContextWindow | None:
    if entry.window:
        return ContextWindow(entry.window, is_enforced=True)
    owners = {other.owner for other in entries}
    if "llamacpp" in owners:
        return await _llama_cpp_window(server)
    if any(map(_is_ollama_entry, entries)):
        return await _ollama_window(server, entry.id)
    return await _lm_studio_window(server, entry.id, requested) if "organization_owner" in owners else None


class ServerApi(msgspec.Struct, frozen=True):
    """Requests to endpoints that only one kind of local server has. Failures return None."""

    http: HttpClient
    headers: Headers
    timeout: float

    async def get(self, target: str) -> Any:
        return await self._fetch("GET", target, b"")

    async def post(self, target: str, document: Any) -> Any:
        return await self._fetch("POST", target, write_json(document))

    async def _fetch(self, method: str, target: str, body: bytes) -> Any:
        try:
            document = await self.http.fetch(
                method, target, self.headers, body, timeout=self.timeout, limit=MAX_LIST_BYTES
            )
            return read_json(document.body) if document.status == 200 else None
        except (BackendError, LooseJsonError):
            return None


async def _llama_cpp_window(server: ServerApi) -> ContextWindow | None:
    settings = _member(await server.get("/props"), "default_generation_settings")
    size = valid_window(_member(settings, "n_ctx"))
    return ContextWindow(size, is_enforced=True) if size else None


def _is_ollama_entry(entry: ModelEntry) -> bool:
    """Whether Ollama lists it: the owner is `library`, or part of the id as in `hf.co/owner/model:tag`."""
    folder, _, name = entry.id.rpartition("/")
    return entry.owner == "library" or (":" in name and bool(folder) and folder.rpartition("/")[2] == entry.owner)


def _with_tag(model: str) -> str:
    """Return the model's name as Ollama lists it: lower case and with a tag."""
    return (model if ":" in model.rpartition("/")[2] else f"{model}:latest").lower()


async def _ollama_window(server: ServerApi, model: str) -> ContextWindow | None:
    """Return the window of the loaded model, else the one in its file, which Ollama may reduce when loading."""
    running = parse_entries(await server.get("/api/ps"))
    loaded = next((entry for entry in running if _with_tag(entry.id) == _with_tag(model)), None)
    if loaded and loaded.window:
        return ContextWindow(loaded.window, is_enforced=True, parameters=loaded.parameters)
    details = await server.post("/api/show", {"model": model})
    parameters = reported_parameters(details) if isinstance(details, dict) else 0
    match = re.search(r"(?m)^num_ctx\s+(\d{1,9})\s*$", str(_member(details, "parameters"))[:20_000])
    if match and valid_window(int(match[1])):
        return ContextWindow(int(match[1]), is_enforced=True, parameters=parameters)
    info = _member(details, "model_info")
    values = [value for key, value in info.items() if key.endswith(".context_length")] if isinstance(info, dict) else []
    size = next((found for value in values if (found := valid_window(value))), 0)
    return ContextWindow(size, is_enforced=False, parameters=parameters) if size else None


async def _lm_studio_window(server: ServerApi, model: str, requested: int) -> ContextWindow | None:
    entry = _find_entry(await server.get("/api/v0/models"), model)
    if requested and _member(entry, "state") == "not-loaded":
        loading = msgspec.structs.replace(server, timeout=_LOAD_TIMEOUT)
        await loading.post("/api/v1/models/load", {"model": model, "context_length": requested})
        entry = _find_entry(await server.get("/api/v0/models"), model)
    loaded, maximum = (valid_window(_member(entry, key)) for key in ("loaded_context_length", "max_context_length"))
    parameters = reported_parameters(entry) if isinstance(entry, dict) else 0
    return ContextWindow(loaded or maximum, bool(loaded), parameters) if loaded or maximum else None


def _member(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _find_entry(document: Any, model: str) -> Any:
    items = _member(document, "data")
    return next((item for item in items if _member(item, "id") == model), None) if isinstance(items, list) else None
