"""Chooses the model: flag, environment, profile, local server, then embedded model."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ostler.core.errors import OstlerError, UsageError
from ostler.models.model_types import ModelClient
from ostler.settings.effective import Settings
from ostler.settings.model_catalogue import list_candidates
from ostler.settings.model_choice import find_candidate
from ostler.settings.model_profiles import (
    UNSET_VARIABLE_CODE,
    Profile,
    active_profile,
    describe_key_source,
    profile_by_name,
)

if TYPE_CHECKING:
    from ostler.models.client_factory import NetworkConfig
    from ostler.models.http_model import HttpModel
    from ostler.models.model_settings import ModelSettings

SERVER_CHECK_SECONDS = 0.5
LIST_SECONDS = 2.0
SETUP_HINT = 'run `ostler demo` to try it without a model, or see "Connect a model" in README.md'


def _describe_nothing(name: str) -> str:
    return ""


async def _check_nothing() -> None:
    """Check nothing: the model has no server."""


class ModelChoice(msgspec.Struct, frozen=True):
    """The chosen model: a description for the user and a factory of its client.

    `make` takes the name of another profile or of another model at the same endpoint; empty means the chosen model.
    `describe_other` describes what `make` would use for such a name, and returns an empty string for the chosen model.
    `check_server` raises `BackendError` if the server does not answer within half a second.
    """

    description: str
    make: Callable[[str], ModelClient]
    describe_other: Callable[[str], str] = _describe_nothing
    check_server: Callable[[], Awaitable[None]] = _check_nothing

    def describe(self, name: str) -> str:
        """Describe the model that `make(name)` uses."""
        return self.describe_other(name) or self.description


class ModelAnnouncer:
    """Tells the user which model a session uses: when it opens and whenever the model changes."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify = notify
        self._current = ""

    def announce(self, choice: ModelChoice, name: str) -> None:
        """Announce the model that `choice.make(name)` uses, unless it was announced last."""
        description = choice.describe(name)
        if description != self._current:
            self._current = description
            self._notify(f"model: {description}")

    def announce_child(self, choice: ModelChoice, agent: str, name: str) -> None:
        """Announce the model of a subagent if it differs from its parent's."""
        description = choice.describe(name)
        if description != self._current:
            self._notify(f"model of subagent {agent}: {description}")


async def choose_model(settings: Settings, flags: Mapping[str, str], env: Mapping[str, str]) -> ModelChoice:
    """Return the first model that is found. Raises `UsageError` if there is none."""
    if name := embedded_name(settings, flags):
        from ostler.models.embedded.choice import embedded_choice

        return embedded_choice(env, name)
    profile = active_profile(settings, env, flags)
    overrides = {name: flags[name] for name in ("api_kind", "dialect", "thinking") if flags.get(name)}
    if overrides:
        profile = msgspec.structs.replace(profile or Profile(name="flags"), **overrides)
    others = _OtherProfiles(settings, env, explain_cache=bool(flags.get("explain_cache")))
    if profile is None or not profile.base_url:
        return await _choose_local(profile, others, env)
    discovered = not profile.model
    if discovered:
        profile = await _with_first_model(profile)
    elif flags.get("model") == profile.model and not flags.get("base_url"):
        await _check_model_name(profile, settings)
    return _make_choice(profile, others.describe(profile), others, discovered=discovered)


def embedded_name(settings: Settings, flags: Mapping[str, str]) -> str:
    """Return `embedded` or `embedded/NAME` if that model is selected, else an empty string."""
    name = flags.get("model") or settings.config.model or settings.config.models.active or ""
    if name.partition("/")[0] != "embedded" or flags.get("base_url"):
        return ""
    return "" if any(candidate.entry.name == name for candidate in list_candidates(settings)) else name


def _profile_label(profile: Profile) -> str:
    label = f" (profile {profile.name})" if profile.name not in (profile.model, "environment", "flags") else ""
    return f"{label}, {profile.api_kind} API{_key_label(profile)}"


def _key_label(profile: Profile) -> str:
    """Say where the API key comes from; empty if there is none."""
    return f", key from {describe_key_source(profile.key_from)}" if profile.key else ""


class _OtherProfiles:
    """The other profiles: the fallbacks, and those that the user may switch to."""

    def __init__(self, settings: Settings, env: Mapping[str, str], *, explain_cache: bool) -> None:
        self._settings = settings
        self._env = env
        self.explain_cache = explain_cache

    def fallbacks(self, profile: Profile) -> list[Profile]:
        """Return the usable fallbacks of a profile. Raises `UsageError` for an unknown name or a missing model."""
        names = dict.fromkeys(name for name in profile.fallback if name != profile.name)
        others = [other for name in names if (other := self._find_usable(name))]
        for other in others:
            if not other.model:
                raise UsageError(f"profile {other.name!r}, a fallback of {profile.name!r}, needs a model")
        return others

    def unusable_fallbacks(self, profile: Profile) -> list[str]:
        """Return the fallbacks that refer to an unset environment variable."""
        return [name for name in profile.fallback if name != profile.name and self._find_usable(name) is None]

    def describe(self, profile: Profile) -> str:
        """Describe a profile: model, endpoint, API, source of the key and fallbacks."""
        from ostler.http.url import strip_secrets

        fallbacks = self.fallbacks(profile)
        suffix = f"; fallback {', '.join(fallback.name for fallback in fallbacks)}" if fallbacks else ""
        if skipped := self.unusable_fallbacks(profile):
            suffix += f"; fallback {', '.join(skipped)} skipped: environment variable not set (see `ostler doctor`)"
        return f"{profile.model} at {strip_secrets(profile.base_url)}{_profile_label(profile)}{suffix}"

    def _find_usable(self, name: str) -> Profile | None:
        """Return a profile, or None if it refers to an unset environment variable."""
        try:
            return profile_by_name(self._settings, self._env, name)
        except UsageError as error:
            if error.fault.code != UNSET_VARIABLE_CODE:
                raise
            return None

    def find(self, name: str) -> Profile | None:
        """Return the profile of exactly this name, or None."""
        names = {candidate.entry.name for candidate in list_candidates(self._settings)}
        return profile_by_name(self._settings, self._env, name) if name in names else None


def _make_choice(
    profile: Profile, description: str, others: _OtherProfiles, *, discovered: bool = False
) -> ModelChoice:
    def select(name: str) -> tuple[Profile, str]:
        """Return the profile of this name, or the chosen profile and the id of another model at its endpoint."""
        if name in ("", profile.name):
            return profile, ""
        other = others.find(name)
        if other is None and name.partition("/")[0] == "embedded":
            raise UsageError(
                "cannot switch to the embedded model, which has its own prompt and tools",
                hint=f"start a new session: ostler --model {name[:80]}",
            )
        return (other, "") if other else (profile, name)

    def make(name: str) -> ModelClient:
        selected, model = select(name)
        fallbacks = others.fallbacks(selected)
        return make_model(selected, model, fallbacks, explain_cache=others.explain_cache, discovered=discovered)

    def describe_other(name: str) -> str:
        selected, model = select(name)
        if selected is profile and model in ("", profile.model):
            return ""
        return others.describe(msgspec.structs.replace(selected, model=model or selected.model))

    async def check_server() -> None:
        async with aclosing(make_http_client(msgspec.structs.replace(profile, timeout=SERVER_CHECK_SECONDS))) as client:
            await client.check_answers(SERVER_CHECK_SECONDS)

    return ModelChoice(description, make, describe_other=describe_other, check_server=check_server)


def make_model(
    profile: Profile,
    model: str = "",
    fallback: Sequence[Profile] = (),
    *,
    explain_cache: bool = False,
    discovered: bool = False,
) -> ModelClient:
    """Make the model client of a profile. Needs a running loop: it fetches the context window in the background.

    The first request to a `discovered` server waits for what it reports about the model's size.
    """
    from ostler.models.dialects.dialect import apply_dialect

    client = make_http_client(profile, model, explain_cache=explain_cache)
    client.start_window_fetch()
    if profile.dialect == "native" and profile.editing != "tools":
        from ostler.models.dialects.sized_model import SizedModel

        edits_in_text = True if profile.editing == "text" else None
        dialect_client: ModelClient = SizedModel(
            client, aliases=tool_aliases(), edits_in_text=edits_in_text, asks_size=discovered
        )
    else:
        dialect_client = apply_dialect(client, profile.dialect, aliases=tool_aliases())
    if not fallback:
        return dialect_client
    from ostler.models.fallback import FallbackModel, FallbackProfile

    others = [
        FallbackProfile(other.name, partial(make_model, other, explain_cache=explain_cache)) for other in fallback
    ]
    return FallbackModel(dialect_client, others, name=profile.name)


def tool_aliases() -> dict[str, str]:
    """Return the tool names of other agents, each with the name used here."""
    from ostler.core.tool_declarations import tool_declarations

    return {alias: tool.name for tool in tool_declarations().values() for alias in tool.aliases}


def make_http_client(profile: Profile, model: str = "", *, explain_cache: bool = False) -> "HttpModel":
    """Make the HTTP client of a profile, without connecting it."""
    from ostler.models.client_factory import make_client

    return make_client(
        api_kind=profile.api_kind,
        base_url=profile.base_url,
        model=model or profile.model,
        api_key=profile.key.reveal() if profile.key else "",
        context_window=profile.context,
        headers={name: value.reveal() for name, value in profile.headers.items()},
        extra=profile.options,
        settings=_make_model_settings(profile),
        network=_make_network(profile),
        explain_cache=explain_cache,
    )


def _make_model_settings(profile: Profile) -> "ModelSettings":
    from ostler.models.model_settings import ModelSettings, Sampling
    from ostler.models.model_types import TokenPrice

    sampling = Sampling(profile.max_output_tokens, profile.temperature, profile.top_p, profile.thinking)
    configured = profile.price
    price = TokenPrice(configured.input, configured.output, configured.cached) if configured else None
    return ModelSettings(profile.provider, sampling, price, describe_key_source(profile.key_from))


def _make_network(profile: Profile) -> "NetworkConfig":
    """Return the proxy, TLS files and timeouts of a profile."""
    from ostler.http.tls import TlsFiles
    from ostler.models.client_factory import NetworkConfig
    from ostler.models.stall_detector import StallTimeouts

    files = [os.path.expanduser(path) for path in (profile.ca, profile.client_cert, profile.client_key)]
    tls_files = TlsFiles(*files) if any(files) else None
    proxy = profile.proxy.reveal() if profile.proxy else ""
    if profile.timeout is None:
        return NetworkConfig(proxy=proxy, tls_files=tls_files)
    timeouts = StallTimeouts(first=profile.timeout, silent=profile.timeout, tick=min(1.0, profile.timeout / 2))
    return NetworkConfig(
        proxy=proxy, tls_files=tls_files, connect_timeout=min(10.0, profile.timeout), timeouts=timeouts
    )


async def _choose_local(profile: Profile | None, others: _OtherProfiles, env: Mapping[str, str]) -> ModelChoice:
    from ostler.models.local_servers import find_local_servers

    requested = profile or Profile(name="")
    name = requested.model
    servers = await find_local_servers()
    for server in servers:
        model = name or server.models[0]
        if model in server.models:
            local = msgspec.structs.replace(requested, name=server.name, model=model, base_url=server.base_url)
            description = f"{model} at {server.base_url} ({server.name}, found on this machine){_key_label(local)}"
            return _make_choice(local, description, others, discovered=True)
    if servers:
        names = ", ".join(model for server in servers for model in server.models[:20])
        raise UsageError(f"no local server has the model {name!r}", hint=f"available: {names}")
    if name:
        raise UsageError(f"model {name!r} has no endpoint, and no local model server is running", hint=SETUP_HINT)
    from ostler.models.embedded.choice import embedded_choice, is_installed

    if is_installed(env):
        return embedded_choice(env)
    raise UsageError("no model configured", code="no_model", hint=SETUP_HINT)


async def _check_model_name(profile: Profile, settings: Settings) -> None:
    """Raise `UsageError` for a name that is neither a profile nor in the list of the server."""
    candidates = list_candidates(settings)
    name = profile.model
    if not candidates or find_candidate(settings, candidates, name):
        return
    client = make_http_client(profile, "unnamed")
    try:
        listed = await asyncio.wait_for(_list_and_close(client), LIST_SECONDS)
    except (OstlerError, TimeoutError):
        listed = []
    names = [*(candidate.entry.name for candidate in candidates), *listed]
    from ostler.text.closest_name import closest_name

    near = closest_name(name, names)
    from ostler.text.model_names import is_listed  # imported late: most starts do not check a name

    if is_listed(name, listed) or not (listed or near):
        return
    hint = f"did you mean {near}?" if near else f"available: {', '.join(names[:20])}"
    raise UsageError(f"there is no profile {name[:80]!r}, and the server lists no such model", hint=hint)


async def _with_first_model(profile: Profile) -> Profile:
    """Return the profile with the server's first model. Raises `UsageError` if it has none."""
    from ostler.http.url import strip_secrets

    names = await _list_and_close(make_http_client(profile, "unnamed"))
    if not names:
        raise UsageError(f"{strip_secrets(profile.base_url)} lists no model", hint="name one with --model")
    return msgspec.structs.replace(profile, model=names[0])


async def _list_and_close(client: "HttpModel") -> list[str]:
    """Return the names of the models that the server lists. Raises `BackendError`."""
    async with aclosing(client):
        return [entry.id for entry in await client.models()]


async def list_models(settings: Settings, flags: Mapping[str, str]) -> Sequence[str]:
    """Return the model names that the servers report."""
    profile = active_profile(settings, os.environ, flags)
    if profile is None or not profile.base_url:
        from ostler.models.local_servers import find_local_servers

        return [name for server in await find_local_servers() for name in server.models]
    return await _list_and_close(make_http_client(profile, "unnamed"))


def active_name(settings: Settings, flags: Mapping[str, str]) -> str:
    """Return the name of the profile that flags and settings select, or an empty string."""
    try:
        profile = active_profile(settings, os.environ, flags)
    except UsageError:
        return ""
    return profile.name if profile else ""
