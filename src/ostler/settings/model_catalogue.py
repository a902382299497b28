"""Lists every model of the configuration as a profile, from each supported form."""

from typing import NamedTuple

from ostler.settings.effective import Settings
from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.schema_models import ApiKind, NamedModel, NamedProvider, PriceConfig, ProfileEntry, Provider

SHORT_FORM = "default"


class ModelCandidate(NamedTuple):
    """A profile, its path in the settings, and the environment variables that may contain its key."""

    entry: ProfileEntry
    path: KeyPath
    key_variables: tuple[str, ...] = ()


def list_candidates(settings: Settings) -> list[ModelCandidate]:
    """Return the named profiles, then the short form, then the models of providers by id."""
    config = settings.config
    found = [ModelCandidate(entry, ("models", "profiles", entry.name)) for entry in config.models.profiles]
    short = config.provider
    if short.name or short.base_url or short.model or short.models:
        ids = dict.fromkeys([short.model or (short.models or ("",))[0], *short.models])
        found += [ModelCandidate(_short_form_profile(short, model), ("provider",)) for model in ids]
    for key, provider in config.providers.items():
        found += [provider_candidate(key, provider, model) for model in provider.models]
    return found


def provider_candidate(key: str, provider: NamedProvider, model: str) -> ModelCandidate:
    """Return a model of a provider by id; the provider need not list the model."""
    listed = provider.models.get(model, NamedModel())
    timeout = provider.options.timeout
    entry = ProfileEntry(
        name=f"{key}/{model}",
        provider=key,
        model=model,
        api_key=provider.options.api_key,
        base_url=provider.options.base_url or provider.api,
        api_kind=_api_kind(provider),
        dialect="text" if listed.tool_call is False else "native",
        context=min(filter(None, (listed.limit.context, listed.limit.input)), default=None),
        max_output_tokens=listed.limit.output,
        headers={**provider.options.headers, **listed.headers},
        options=listed.options,
        timeout=None if isinstance(timeout, bool) or timeout is None else timeout / 1000,
        price=_price(listed.cost),
    )
    return ModelCandidate(entry, ("providers", key), provider.env)


def _short_form_profile(provider: Provider, model: str) -> ProfileEntry:
    first = provider.model or (provider.models or ("",))[0]
    return ProfileEntry(
        name=SHORT_FORM if model == first else model,
        provider=provider.name,
        model=model,
        api_key=provider.api_key,
        base_url=provider.base_url,
        api_kind=provider.api_kind,
        timeout=provider.timeout_ms / 1000 if provider.timeout_ms else None,
    )


def _api_kind(provider: NamedProvider) -> ApiKind | None:
    return "anthropic" if "anthropic" in provider.npm else "openai" if provider.npm else None


def _price(cost: dict[str, object]) -> PriceConfig | None:
    def amount(name: str) -> float:
        value = cost.get(name, 0)
        return float(value) if isinstance(value, int | float) and value >= 0 else 0.0

    if not cost:
        return None
    return PriceConfig(amount("input"), amount("output"), amount("cache_read") if "cache_read" in cost else None)
