"""Creates the model client for a profile; imports only the adapter needed."""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ostler.core.errors import UsageError
from ostler.http.client import HttpClient
from ostler.http.dialer import Dialer
from ostler.http.proxy import Proxy, parse_proxy, proxy_for
from ostler.http.tls import TlsFiles
from ostler.http.url import ServerOrigin
from ostler.models.base_url import parse_base_url
from ostler.models.http_model import HttpModel, HttpModelConfig
from ostler.models.model_settings import ModelSettings
from ostler.models.retry import RetryPolicy
from ostler.models.secret_mask import make_secret_mask
from ostler.models.stall_detector import StallTimeouts
from ostler.settings.schema_models import ApiKind


class NetworkConfig(msgspec.Struct, frozen=True):
    """Proxy, TLS, timeouts and retries. Without `proxy`, the variables in `environ` or `os.environ` are used."""

    proxy: str = ""
    environ: Mapping[str, str] | None = None
    tls_files: TlsFiles | None = None
    connect_timeout: float = 10.0
    timeouts: StallTimeouts = StallTimeouts()
    retry_policy: RetryPolicy = RetryPolicy()
    clock: Callable[[], float] = time.monotonic


def make_client(
    *,
    api_kind: str,
    base_url: str,
    model: str,
    api_key: str = "",
    context_window: int | None = None,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
    settings: ModelSettings = ModelSettings(),  # noqa: B008 - frozen, so it can be shared
    network: NetworkConfig = NetworkConfig(),  # noqa: B008 - as above
    explain_cache: bool = False,
) -> HttpModel:
    """Create a `ModelClient`; it connects on the first request. `extra` is merged into each request's body.

    With `explain_cache` each reply starts with a note on the prefix that its request shares with earlier ones.
    Raises `UsageError` for invalid values.
    """
    kind = _parse_kind(api_kind)
    if not model.strip():
        raise UsageError("no model is set", hint="set the profile's model, or pass --model")
    base = parse_base_url(base_url, kind)
    dialer = Dialer(
        base.origin,
        proxy=_find_proxy(base.origin, network),
        tls_files=network.tls_files,
        timeout=network.connect_timeout,
    )
    header_pairs = tuple((name.lower(), value) for name, value in (headers or {}).items())
    config = HttpModelConfig(
        http=HttpClient(dialer),
        base_url=base,
        model=model.strip(),
        api_key=api_key.strip(),
        context_window=context_window,
        headers=header_pairs,
        extra=extra or {},
        settings=settings,
        timeouts=network.timeouts,
        retry_policy=network.retry_policy,
        clock=network.clock,
        explain_cache=explain_cache,
        secret_mask=make_secret_mask(api_key.strip(), header_pairs, base, network.proxy, settings.key_source),
    )
    return _make_adapter(kind, config)


def _find_proxy(origin: ServerOrigin, network: NetworkConfig) -> Proxy | None:
    if network.proxy:
        return parse_proxy(network.proxy, "the profile's `proxy`")
    return proxy_for(origin, os.environ if network.environ is None else network.environ)


def _parse_kind(api_kind: str) -> ApiKind:
    if api_kind == "openai" or not api_kind:
        return "openai"
    if api_kind == "anthropic":
        return "anthropic"
    raise UsageError(f"unknown apiKind {api_kind[:40]!r}", hint="use openai or anthropic")


def _make_adapter(kind: ApiKind, config: HttpModelConfig) -> HttpModel:
    if kind == "anthropic":
        from ostler.models.anthropic_messages import AnthropicMessages

        return AnthropicMessages(config)
    from ostler.models.openai_chat import OpenAIChat

    return OpenAIChat(config)
