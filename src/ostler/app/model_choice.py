"""Which model, when: flag, environment, profile, a local server, the embedded one, else the ways to one."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ostler.core.errors import UsageError
from ostler.core.tools import ToolSpec
from ostler.models.model_types import ModelClient
from ostler.settings.effective import Settings
from ostler.settings.model_catalogue import list_candidates
from ostler.settings.model_profiles import UNSET_VARIABLE_CODE, Profile, active_profile, profile_by_name

if TYPE_CHECKING:
    from ostler.models.client_factory import NetworkConfig
    from ostler.models.http_model import HttpModel
    from ostler.models.model_settings import ModelSettings

SETUP_HINT = (
    "start a local server (vLLM, Ollama, llama.cpp, LM Studio), or set OSTLER_BASE_URL and OSTLER_MODEL "
    "(and OSTLER_API_KEY), or write a profile into ~/.ostler/config.json, or install a small one (1.2 GB): "
    "ostler model install, or see it work without one: ostler demo"
)


class ModelChoice(msgspec.Struct, frozen=True):
    """The model that was taken: in a line for the person, and how to make its client.

    `make` takes the name of another profile, or of another model at the same endpoint, or nothing for the chosen one.
    A model with little room brings a prompt of its own, and makes do with some of the tools.
    """

    description: str
    make: Callable[[str], ModelClient]
    prompt: str = ""
    tools: Callable[[Sequence[ToolSpec]], Sequence[ToolSpec]] = tuple


async def choose_model(settings: Settings, flags: Mapping[str, str], env: Mapping[str, str]) -> ModelChoice:
    """The first of the ways that leads to a model."""
    if name := embedded_name(settings, flags):
        from ostler.app.embedded_model import embedded_choice

        return embedded_choice(env, name)
    profile = active_profile(
        settings,
        env,
        flag_model=flags.get("model", ""),
        flag_key=flags.get("api_key", ""),
        flag_base_url=flags.get("base_url", ""),
    )
    told = {name: flags[name] for name in ("api_kind", "dialect", "thinking") if flags.get(name)}
    if told:
        profile = msgspec.structs.replace(profile or Profile(name="flags"), **told)
    others = _OtherProfiles(settings, env, explain_cache=bool(flags.get("explain_cache")))
    if profile is None or not profile.base_url:
        return await _choose_local(profile, others, env)
    if not profile.model:
        profile = await _with_first_model(profile)
    from ostler.models.base_url import strip_secrets

    standby = others.fallbacks(profile)
    then = f", then {', '.join(one.name for one in standby)}" if standby else ""
    if lacking := others.unusable_fallbacks(profile):
        then += f", not {', '.join(lacking)}, for a variable is not set (ostler doctor)"
    return _make_choice(
        profile, f"{profile.model} at {strip_secrets(profile.base_url)}" + _profile_label(profile) + then, others
    )


def embedded_name(settings: Settings, flags: Mapping[str, str]) -> str:
    """`embedded` or `embedded/NAME`, where that is what was asked for and no profile is called so."""
    wanted = flags.get("model") or settings.config.model or settings.config.models.active or ""
    if wanted.partition("/")[0] != "embedded" or flags.get("base_url"):
        return ""
    return "" if any(candidate.entry.name == wanted for candidate in list_candidates(settings)) else wanted


def _profile_label(profile: Profile) -> str:
    named = f" (profile {profile.name})" if profile.name not in (profile.model, "environment", "flags") else ""
    return f"{named}, {profile.api_kind} API"


class _OtherProfiles:
    """The profiles beside the chosen one: those to go on with, and those that a person may change to."""

    def __init__(self, settings: Settings, env: Mapping[str, str], *, explain_cache: bool) -> None:
        self._settings = settings
        self._env = env
        self.explain_cache = explain_cache

    def fallbacks(self, profile: Profile) -> list[Profile]:
        """Where a profile's work goes when it fails, resolved now, so that a wrong name is told at once."""
        names = dict.fromkeys(name for name in profile.fallback if name != profile.name)
        others = [other for name in names if (other := self._find_usable(name))]
        for other in others:
            if not other.model:
                raise UsageError(f"the profile {other.name!r}, a fallback of {profile.name!r}, needs a model")
        return others

    def unusable_fallbacks(self, profile: Profile) -> list[str]:
        """Those of its fallbacks that cannot be used now."""
        return [name for name in profile.fallback if name != profile.name and self._find_usable(name) is None]

    def _find_usable(self, name: str) -> Profile | None:
        """A profile that only waits for another's failure may lack its key here: then it is no way out."""
        try:
            return profile_by_name(self._settings, self._env, name)
        except UsageError as error:
            if error.fault.code != UNSET_VARIABLE_CODE:
                raise
            return None

    def find(self, name: str) -> Profile | None:
        """The profile of that very name."""
        names = {candidate.entry.name for candidate in list_candidates(self._settings)}
        return profile_by_name(self._settings, self._env, name) if name in names else None


def _make_choice(profile: Profile, description: str, others: _OtherProfiles) -> ModelChoice:
    def change_to(name: str) -> ModelClient:
        other = others.find(name) if name not in ("", profile.name) else None
        if other is None and name.partition("/")[0] == "embedded":
            raise UsageError(
                "the embedded model has a prompt, tools and a window of its own, and cannot go on with this session",
                hint=f"begin one with it: ostler --model {name[:80]}",
            )
        meant = other or profile
        model = "" if other or name == profile.name else name
        return make_model(meant, model, others.fallbacks(meant), explain_cache=others.explain_cache)

    return ModelChoice(description, change_to)


def make_model(
    profile: Profile, model: str = "", fallback: Sequence[Profile] = (), *, explain_cache: bool = False
) -> ModelClient:
    """The model of a profile in its dialect. It asks the server for its window meanwhile, so a loop must run."""
    from ostler.models.dialects.dialect import apply_dialect

    client = make_http_client(profile, model, explain_cache=explain_cache)
    client.start_window_fetch()
    speaker = apply_dialect(client, profile.dialect, aliases=_tool_aliases())
    if not fallback:
        return speaker
    from ostler.models.fallback import FallbackModel, FallbackProfile

    others = [
        FallbackProfile(other.name, partial(make_model, other, explain_cache=explain_cache)) for other in fallback
    ]
    return FallbackModel(speaker, others, name=profile.name)


def _tool_aliases() -> dict[str, str]:
    """What tools are called elsewhere, each with its name here."""
    from ostler.core.tool_aliases import TOOL_ALIASES

    return {word: tool for tool, words in TOOL_ALIASES.items() for word in words.split()}


def make_http_client(profile: Profile, model: str = "", *, explain_cache: bool = False) -> "HttpModel":
    """The bare client of a profile; nothing is connected yet."""
    from ostler.models.client_factory import make_client

    return make_client(
        api_kind=profile.api_kind,
        base_url=profile.base_url,
        model=model or profile.model,
        api_key=profile.key.reveal() if profile.key else "",
        context_window=profile.context,
        headers={name: value.reveal() for name, value in profile.headers.items()},
        extra=profile.options,
        settings=_make_terms(profile),
        network=_make_network(profile),
        explain_cache=explain_cache,
    )


def _make_terms(profile: Profile) -> "ModelSettings":
    from ostler.models.model_settings import ModelSettings, Sampling, TokenPrice

    sampling = Sampling(profile.max_output_tokens, profile.temperature, profile.top_p, profile.thinking)
    told = profile.price
    price = TokenPrice(told.input, told.output, told.cached) if told else None
    return ModelSettings(profile.provider, sampling, price)


def _make_network(profile: Profile) -> "NetworkConfig":
    """How the profile's server is reached and how long it may be silent."""
    from ostler.models.client_factory import NetworkConfig
    from ostler.models.stall_detector import StallTimeouts
    from ostler.models.tls import TlsFiles

    files = [os.path.expanduser(path) for path in (profile.ca, profile.client_cert, profile.client_key)]
    trust = TlsFiles(*files) if any(files) else None
    proxy = profile.proxy.reveal() if profile.proxy else ""
    if profile.timeout is None:
        return NetworkConfig(proxy=proxy, tls_files=trust)
    patience = StallTimeouts(first=profile.timeout, silent=profile.timeout, tick=min(1.0, profile.timeout / 2))
    return NetworkConfig(proxy=proxy, tls_files=trust, connect_timeout=min(10.0, profile.timeout), timeouts=patience)


async def _choose_local(profile: Profile | None, others: _OtherProfiles, env: Mapping[str, str]) -> ModelChoice:
    from ostler.models.local_servers import find_local_servers

    asked = profile or Profile(name="")
    wanted = asked.model
    servers = await find_local_servers()
    for server in servers:
        model = wanted or server.models[0]
        if model in server.models:
            found = msgspec.structs.replace(asked, name=server.name, model=model, base_url=server.base_url)
            return _make_choice(found, f"{model} at {server.base_url} ({server.name}, found on this machine)", others)
    if servers:
        names = ", ".join(name for server in servers for name in server.models[:20])
        raise UsageError(f"no server on this machine has the model {wanted!r}", hint=f"they have {names}")
    if wanted:
        raise UsageError(
            f"the model {wanted!r} has no endpoint, and no model server answers on this machine", hint=SETUP_HINT
        )
    from ostler.app.embedded_model import embedded_choice, is_installed

    if is_installed(env):
        return embedded_choice(env)
    raise UsageError("there is no model to work with", code="no_model", hint=SETUP_HINT)


async def _with_first_model(profile: Profile) -> Profile:
    """An endpoint without a model's name: the first one the server has."""
    from ostler.models.base_url import strip_secrets

    client = make_http_client(profile, "unnamed")
    try:
        entries = await client.models()
    finally:
        await client.aclose()
    if not entries:
        raise UsageError(f"{strip_secrets(profile.base_url)} has no model", hint="name one with --model")
    return msgspec.structs.replace(profile, model=entries[0].id)
