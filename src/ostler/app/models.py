"""Which model, when: flag, environment, profile, a local server, the embedded one, else the ways to one."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ostler.models.words import ModelClient
from ostler.settings.catalogue import catalogue
from ostler.settings.effective import Settings
from ostler.settings.profiles import UNSET, Profile, active, named
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.tools import ToolSpec

if TYPE_CHECKING:
    from ostler.models.http_model import HttpModel
    from ostler.models.make import Network
    from ostler.models.terms import Terms

WAYS = (
    "start a local server (vLLM, Ollama, llama.cpp, LM Studio), or set OSTLER_BASE_URL and OSTLER_MODEL "
    "(and OSTLER_API_KEY), or write a profile into ~/.ostler/config.json, or install a small one (1.2 GB): "
    "ostler model install, or see it work without one: ostler demo"
)


class ModelChoice(msgspec.Struct, frozen=True):
    """The model that was taken: in a line for the person, and how to make its client.

    `make` takes the name of another profile, or of another model at the same endpoint, or nothing for the chosen one.
    A model with little room brings a prompt of its own, and makes do with some of the tools.
    """

    told: str
    make: Callable[[str], ModelClient]
    prompt: str = ""
    tools: Callable[[Sequence[ToolSpec]], Sequence[ToolSpec]] = tuple


async def choose_model(settings: Settings, flags: Mapping[str, str], env: Mapping[str, str]) -> ModelChoice:
    """The first of the ways that leads to a model."""
    if name := embedded_name(settings, flags):
        from ostler.app.embedded import embedded_choice

        return embedded_choice(env, name)
    profile = active(
        settings,
        env,
        flag_model=flags.get("model", ""),
        flag_key=flags.get("api_key", ""),
        flag_base_url=flags.get("base_url", ""),
    )
    told = {name: flags[name] for name in ("api_kind", "dialect", "thinking") if flags.get(name)}
    if told:
        profile = msgspec.structs.replace(profile or Profile(name="flags"), **told)
    others = _Others(settings, env, explain_cache=bool(flags.get("explain_cache")))
    if profile is None or not profile.base_url:
        return await _local(profile, others, env)
    if not profile.model:
        profile = await _with_its_model(profile)
    from ostler.models.origin import without_secrets

    standby = others.named(profile)
    then = f", then {', '.join(one.name for one in standby)}" if standby else ""
    if lacking := others.lacking(profile):
        then += f", not {', '.join(lacking)}, for a variable is not set (ostler doctor)"
    return _choice(profile, f"{profile.model} at {without_secrets(profile.base_url)}" + _named(profile) + then, others)


def embedded_name(settings: Settings, flags: Mapping[str, str]) -> str:
    """`embedded` or `embedded/NAME`, where that is what was asked for and no profile is called so."""
    wanted = flags.get("model") or settings.config.model or settings.config.models.active or ""
    if wanted.partition("/")[0] != "embedded" or flags.get("base_url"):
        return ""
    return "" if any(candidate.entry.name == wanted for candidate in catalogue(settings)) else wanted


def _named(profile: Profile) -> str:
    named = f" (profile {profile.name})" if profile.name not in (profile.model, "environment", "flags") else ""
    return f"{named}, {profile.api_kind} API"


class _Others:
    """The profiles beside the chosen one: those to go on with, and those that a person may change to."""

    def __init__(self, settings: Settings, env: Mapping[str, str], *, explain_cache: bool) -> None:
        self._settings = settings
        self._env = env
        self.explain_cache = explain_cache

    def named(self, profile: Profile) -> list[Profile]:
        """Where a profile's work goes when it fails, resolved now, so that a wrong name is told at once."""
        names = dict.fromkeys(name for name in profile.fallback if name != profile.name)
        others = [other for name in names if (other := self._usable(name))]
        for other in others:
            if not other.model:
                raise UsageError(f"the profile {other.name!r}, a fallback of {profile.name!r}, needs a model")
        return others

    def lacking(self, profile: Profile) -> list[str]:
        """Those of its fallbacks that cannot be used now."""
        return [name for name in profile.fallback if name != profile.name and self._usable(name) is None]

    def _usable(self, name: str) -> Profile | None:
        """A profile that only waits for another's failure may lack its key here: then it is no way out."""
        try:
            return named(self._settings, self._env, name)
        except UsageError as error:
            if error.fault.code != UNSET:
                raise
            return None

    def known_as(self, name: str) -> Profile | None:
        """The profile of that very name."""
        names = {candidate.entry.name for candidate in catalogue(self._settings)}
        return named(self._settings, self._env, name) if name in names else None


def _choice(profile: Profile, told: str, others: _Others) -> ModelChoice:
    def change_to(name: str) -> ModelClient:
        other = others.known_as(name) if name not in ("", profile.name) else None
        if other is None and name.partition("/")[0] == "embedded":
            raise UsageError(
                "the embedded model has a prompt, tools and a window of its own, and cannot go on with this session",
                hint=f"begin one with it: ostler --model {name[:80]}",
            )
        meant = other or profile
        model = "" if other or name == profile.name else name
        return make(meant, model, others.named(meant), explain_cache=others.explain_cache)

    return ModelChoice(told, change_to)


def make(
    profile: Profile, model: str = "", fallback: Sequence[Profile] = (), *, explain_cache: bool = False
) -> ModelClient:
    """The model of a profile in its dialect. It asks the server for its window meanwhile, so a loop must run."""
    from ostler.models.dialects.wrap import with_dialect

    client = connect(profile, model, explain_cache=explain_cache)
    client.learn_soon()
    speaker = with_dialect(client, profile.dialect, aliases=_aliases())
    if not fallback:
        return speaker
    from ostler.models.fallback import Standby, WithFallback

    others = [Standby(other.name, partial(make, other, explain_cache=explain_cache)) for other in fallback]
    return WithFallback(speaker, others, name=profile.name)


def _aliases() -> dict[str, str]:
    """What tools are called elsewhere, each with its name here."""
    from ostler.vocabulary.tool_names import NAMES

    return {word: tool for tool, words in NAMES.items() for word in words.split()}


def connect(profile: Profile, model: str = "", *, explain_cache: bool = False) -> "HttpModel":
    """The bare client of a profile; nothing is connected yet."""
    from ostler.models.make import make_client

    return make_client(
        api_kind=profile.api_kind,
        base_url=profile.base_url,
        model=model or profile.model,
        api_key=profile.key.reveal() if profile.key else "",
        context=profile.context,
        headers={name: value.reveal() for name, value in profile.headers.items()},
        extra=profile.options,
        terms=_terms(profile),
        network=_network(profile),
        explain_cache=explain_cache,
    )


def _terms(profile: Profile) -> "Terms":
    from ostler.models.terms import Price, Sampling, Terms

    sampling = Sampling(profile.max_output_tokens, profile.temperature, profile.top_p, profile.thinking)
    told = profile.price
    price = Price(told.input, told.output, told.cached) if told else None
    return Terms(profile.provider, sampling, price)


def _network(profile: Profile) -> "Network":
    """How the profile's server is reached and how long it may be silent."""
    from ostler.models.make import Network
    from ostler.models.patience import Patience
    from ostler.models.tls import Trust

    files = [os.path.expanduser(path) for path in (profile.ca, profile.client_cert, profile.client_key)]
    trust = Trust(*files) if any(files) else None
    proxy = profile.proxy.reveal() if profile.proxy else ""
    if profile.timeout is None:
        return Network(proxy=proxy, trust=trust)
    patience = Patience(first=profile.timeout, silent=profile.timeout, tick=min(1.0, profile.timeout / 2))
    return Network(proxy=proxy, trust=trust, connect_timeout=min(10.0, profile.timeout), patience=patience)


async def _local(profile: Profile | None, others: _Others, env: Mapping[str, str]) -> ModelChoice:
    from ostler.models.find_local import find_local_servers

    asked = profile or Profile(name="")
    wanted = asked.model
    servers = await find_local_servers()
    for server in servers:
        model = wanted or server.models[0]
        if model in server.models:
            found = msgspec.structs.replace(asked, name=server.name, model=model, base_url=server.base_url)
            return _choice(found, f"{model} at {server.base_url} ({server.name}, found on this machine)", others)
    if servers:
        names = ", ".join(name for server in servers for name in server.models[:20])
        raise UsageError(f"no server on this machine has the model {wanted!r}", hint=f"they have {names}")
    if wanted:
        raise UsageError(
            f"the model {wanted!r} has no endpoint, and no model server answers on this machine", hint=WAYS
        )
    from ostler.app.embedded import embedded_choice, is_installed

    if is_installed(env):
        return embedded_choice(env)
    raise UsageError("there is no model to work with", code="no_model", hint=WAYS)


async def _with_its_model(profile: Profile) -> Profile:
    """An endpoint without a model's name: the first one the server has."""
    from ostler.models.origin import without_secrets

    client = connect(profile, "unnamed")
    try:
        entries = await client.models()
    finally:
        await client.aclose()
    if not entries:
        raise UsageError(f"{without_secrets(profile.base_url)} has no model", hint="name one with --model")
    return msgspec.structs.replace(profile, model=entries[0].id)
