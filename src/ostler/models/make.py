"""Makes the client for a profile's values; the adapter is imported only here, and only the one that is needed."""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from ostler.models.dial import Dialer
from ostler.models.hidden import hidden_of
from ostler.models.http import HttpClient
from ostler.models.http_model import HttpModel, Setup
from ostler.models.origin import Origin, parse_base_url
from ostler.models.patience import Patience
from ostler.models.proxy import Proxy, parse_proxy, proxy_for
from ostler.models.retry import Retries
from ostler.models.terms import Terms
from ostler.models.tls import Trust
from ostler.vocabulary.errors import UsageError

ApiKind = Literal["openai", "anthropic"]


class Network(msgspec.Struct, frozen=True):
    """How servers are reached and waited for; without a `proxy`, `environ` or the process's own names them."""

    proxy: str = ""
    environ: Mapping[str, str] | None = None
    trust: Trust | None = None
    connect_timeout: float = 10.0
    patience: Patience = Patience()
    retries: Retries = Retries()
    clock: Callable[[], float] = time.monotonic


def make_client(
    *,
    api_kind: str,
    base_url: str,
    model: str,
    api_key: str = "",
    context: int | None = None,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
    terms: Terms = Terms(),  # noqa: B008 - frozen, so it can be shared
    network: Network = Network(),  # noqa: B008 - as above
    explain_cache: bool = False,
) -> HttpModel:
    """A `ModelClient`; nothing is connected yet. `extra` goes into each request's body as it is.

    With `explain_cache` each reply begins with a line on what its request has in common with the ones before.
    """
    kind = _kind(api_kind)
    if not model.strip():
        raise UsageError("no model is named", hint="set the profile's model, or --model")
    base = parse_base_url(base_url, kind)
    dialer = Dialer(
        base.origin, proxy=_proxy(base.origin, network), trust=network.trust, timeout=network.connect_timeout
    )
    sent = tuple((name.lower(), value) for name, value in (headers or {}).items())
    setup = Setup(
        http=HttpClient(dialer),
        base=base,
        model=model.strip(),
        key=api_key.strip(),
        context=context,
        headers=sent,
        extra=extra or {},
        terms=terms,
        patience=network.patience,
        retries=network.retries,
        clock=network.clock,
        explain_cache=explain_cache,
        hidden=hidden_of(api_key.strip(), sent, base, network.proxy),
    )
    return _adapter(kind, setup)


def _proxy(origin: Origin, network: Network) -> Proxy | None:
    if network.proxy:
        return parse_proxy(network.proxy, "the profile's `proxy`")
    return proxy_for(origin, os.environ if network.environ is None else network.environ)


def _kind(api_kind: str) -> ApiKind:
    if api_kind == "openai" or not api_kind:
        return "openai"
    if api_kind == "anthropic":
        return "anthropic"
    raise UsageError(f"the apiKind {api_kind[:40]!r} is not known", hint="write openai or anthropic")


def _adapter(kind: ApiKind, setup: Setup) -> HttpModel:
    if kind == "anthropic":
        from ostler.models.anthropic_messages import AnthropicMessages

        return AnthropicMessages(setup)
    from ostler.models.openai_chat import OpenAIChat

    return OpenAIChat(setup)
