"""Lists a server's models."""

from typing import Any

import msgspec

from ostler.core.errors import BackendError
from ostler.http.client import Headers, HttpClient
from ostler.http.url import BaseUrl
from ostler.models.loose_json import LooseJsonError, read_json
from ostler.models.model_size import parameters_by_name
from ostler.text.lazy_regex import lazy_regex

MAX_LIST_BYTES = 4 * 1024 * 1024
_MAX_MODELS = 2_000
_PLAIN_NAME = lazy_regex(r"[\w .:/@+-]{1,200}")
_WINDOW_KEYS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "context_window")


class ModelEntry(msgspec.Struct, frozen=True):
    """A model of a server. `window` and `parameters` are 0 if the server does not report them."""

    id: str
    window: int = 0
    owner: str = ""
    parameters: int = 0


async def list_models(
    http: HttpClient, base_url: BaseUrl, headers: Headers = (), *, timeout: float = 5.0
) -> tuple[ModelEntry, ...]:
    """Return the server's models. Raises `BackendError` if it does not list them."""
    document = await http.fetch("GET", base_url.endpoint("models"), headers, timeout=timeout, limit=MAX_LIST_BYTES)
    if document.status != 200:
        raise BackendError(f"{http.origin.address} does not list its models ({document.status})", code="not_found")
    try:
        return parse_entries(read_json(document.body))
    except LooseJsonError:
        raise BackendError(
            f"{http.origin.address} does not list its models",
            code="wrong_url",
            hint="the base URL seems wrong: it usually ends with /v1",
        ) from None


def parse_entries(document: Any) -> tuple[ModelEntry, ...]:
    """Return the entries of a model list, skipping models with unusual names."""
    items = document.get("data", document.get("models")) if isinstance(document, dict) else document
    if not isinstance(items, list):
        return ()
    entries = (_parse_entry(item) for item in items[:_MAX_MODELS])
    return tuple(entry for entry in entries if entry is not None)


async def explain_not_found(http: HttpClient, base_url: BaseUrl, headers: Headers, model: str) -> BackendError:
    """Return the error for a 404: an unknown model, with the available names, or a wrong base URL."""
    server = http.origin.address
    try:
        names = [entry.id for entry in await list_models(http, base_url, headers, timeout=3.0)]
    except BackendError:
        names = []
    if names and model not in names:
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        hint = f"available: {', '.join(names[:10])}{more}"
        return BackendError(f"{server} has no model {model!r}", code="model_unknown", hint=hint)
    hint = f"check the model's name {model!r}, and the base URL, which usually ends with /v1"
    return BackendError(f"{server} has nothing at {base_url.path or '/'}", code="wrong_url", hint=hint)


def _parse_entry(item: Any) -> ModelEntry | None:
    if not isinstance(item, dict):
        return None
    name, owner = item.get("id", item.get("name", item.get("model"))), item.get("owned_by")
    if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name):
        return None
    window = next((size for key in _WINDOW_KEYS if (size := valid_window(item.get(key)))), 0)
    plain_owner = owner if isinstance(owner, str) and _PLAIN_NAME.fullmatch(owner) else ""
    return ModelEntry(name, window, plain_owner, reported_parameters(item))


def reported_parameters(item: Any) -> int:
    """Return the number of parameters in a server's description of a model, or 0.

    llama.cpp reports `meta.n_params`, Ollama `details.parameter_size` and LM Studio `params_string`.
    """
    meta, details = (item.get(key) if isinstance(item.get(key), dict) else {} for key in ("meta", "details"))
    count = meta.get("n_params")
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        return count
    texts = (details.get("parameter_size"), item.get("params_string"))
    return next((size for text in texts if isinstance(text, str) and (size := parameters_by_name(text[:20]))), 0)


def valid_window(value: Any) -> int:
    """Return a context window, or 0 if `value` is not a plausible one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 256 <= value <= 100_000_000 else 0
