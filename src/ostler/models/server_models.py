"""Which models a server has."""

from typing import Any

import msgspec

from ostler.core.errors import BackendError
from ostler.models.base_url import BaseUrl
from ostler.models.http import Headers, HttpClient
from ostler.models.loose_json import LooseJsonError, read_json
from ostler.text.lazy_regex import lazy_regex

MAX_LIST_BYTES = 4 * 1024 * 1024
_MAX_MODELS = 2_000
_PLAIN_NAME = lazy_regex(r"[\w .:/@+-]{1,200}")
_WINDOW_KEYS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "context_window")


class ModelEntry(msgspec.Struct, frozen=True):
    """A model that a server offers; the window is 0 where the server does not tell it."""

    id: str
    window: int = 0
    owner: str = ""


async def list_models(
    http: HttpClient, base_url: BaseUrl, headers: Headers = (), *, timeout: float = 5.0
) -> tuple[ModelEntry, ...]:
    """The server's models; a `BackendError` when it does not tell them."""
    document = await http.fetch("GET", base_url.endpoint("models"), headers, timeout=timeout, limit=MAX_LIST_BYTES)
    if document.status != 200:
        raise BackendError(f"{http.origin.address} does not tell its models ({document.status})", code="not_found")
    try:
        return parse_entries(read_json(document.body))
    except LooseJsonError:
        raise BackendError(
            f"{http.origin.address} does not tell its models",
            code="wrong_url",
            hint="the base URL seems wrong: it usually ends with /v1",
        ) from None


def parse_entries(document: Any) -> tuple[ModelEntry, ...]:
    """Entries of a model list; what is no plain name is left out."""
    items = document.get("data", document.get("models")) if isinstance(document, dict) else document
    if not isinstance(items, list):
        return ()
    entries = (_parse_entry(item) for item in items[:_MAX_MODELS])
    return tuple(entry for entry in entries if entry is not None)


async def explain_not_found(http: HttpClient, base_url: BaseUrl, headers: Headers, model: str) -> BackendError:
    """What a 404 means: an unknown model, with the names there are, or a wrong base URL."""
    where = http.origin.address
    try:
        names = [entry.id for entry in await list_models(http, base_url, headers, timeout=3.0)]
    except BackendError:
        names = []
    if names and model not in names:
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        hint = f"it has {', '.join(names[:10])}{more}"
        return BackendError(f"{where} has no model {model!r}", code="model_unknown", hint=hint)
    hint = f"check the model's name {model!r}, and the base URL, which usually ends with /v1"
    return BackendError(f"{where} has nothing at {base_url.path or '/'}", code="wrong_url", hint=hint)


def _parse_entry(item: Any) -> ModelEntry | None:
    if not isinstance(item, dict):
        return None
    name, owner = item.get("id", item.get("name", item.get("model"))), item.get("owned_by")
    if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name):
        return None
    window = next((size for key in _WINDOW_KEYS if (size := valid_window(item.get(key)))), 0)
    return ModelEntry(name, window, owner if isinstance(owner, str) and _PLAIN_NAME.fullmatch(owner) else "")


def valid_window(value: Any) -> int:
    """A window that can be one, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 256 <= value <= 100_000_000 else 0
