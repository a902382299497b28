"""Chooses the model to use from the configured ones."""

from collections.abc import Sequence

import msgspec

from ostler.core.errors import UsageError
from ostler.settings.effective import Settings
from ostler.settings.model_catalogue import SHORT_FORM, ModelCandidate, provider_candidate
from ostler.settings.problems import quote_value
from ostler.settings.schema_models import ProfileEntry
from ostler.settings.type_descriptions import suggestion
from ostler.settings.vendors import VENDORS


def choose_model(settings: Settings, candidates: list[ModelCandidate], flag_model: str) -> ModelCandidate | None:
    """Choose by the flag, else by `model` or `models.active` (the later layer wins), else the only model.

    Return None if no model is configured. Raises `UsageError` if the choice is unknown or ambiguous.
    """
    config = settings.config
    name = flag_model
    if (
        not name
        and config.model
        and settings.last_layer_index(("model",)) >= settings.last_layer_index(("models", "active"))
    ):
        name = config.model
    if not name:
        return _default_candidate(settings, candidates)
    found = find_candidate(settings, candidates, name)
    if found:
        return found
    base = _default_candidate(settings, candidates)
    if base:
        return base._replace(entry=_with_model(base.entry, name))
    vendor, _, model = name.partition("/")
    if vendor in VENDORS and model:
        return ModelCandidate(ProfileEntry(name=name, provider=vendor, model=model), ())
    return ModelCandidate(ProfileEntry(name=name, model=name), ())


def _default_candidate(settings: Settings, candidates: list[ModelCandidate]) -> ModelCandidate | None:
    active = settings.config.models.active
    if active is not None:
        found = next((candidate for candidate in candidates if candidate.entry.name == active), None)
        if found is None:
            origin = settings.origin("models.active")
            raise unknown_model_error(
                f"{origin}: models.active is {quote_value(active)}, which is not a profile", active, candidates
            )
        return found
    profiles = [candidate for candidate in candidates if candidate.path[:2] == ("models", "profiles")]
    short = [candidate for candidate in candidates if candidate.entry.name == SHORT_FORM and not profiles]
    usable = profiles or short or candidates
    if len(usable) > 1:
        raise unknown_model_error("several models are configured, but models.active is not set", "", candidates)
    return usable[0] if usable else None


def find_candidate(settings: Settings, candidates: list[ModelCandidate], name: str) -> ModelCandidate | None:
    """Find a profile by its name, a provider's model by `id/model`, or the only profile with that model."""
    exact = [candidate for candidate in candidates if candidate.entry.name == name]
    if exact:
        return exact[0]
    key, _, model = name.partition("/")
    if model and key in settings.config.providers:
        return provider_candidate(key, settings.config.providers[key], model)
    same = [candidate for candidate in candidates if candidate.entry.model == name]
    return same[0] if len(same) == 1 else None


def _with_model(entry: ProfileEntry, model: str) -> ProfileEntry:
    """Return the same endpoint with another model, whose limits and price are unknown."""
    return msgspec.structs.replace(entry, model=model, context=None, max_output_tokens=None, price=None)


def unknown_model_error(message: str, name: str, candidates: Sequence[ModelCandidate]) -> UsageError:
    """Return an error that lists the known names and suggests the closest one."""
    names = [candidate.entry.name for candidate in candidates]
    return UsageError(f"{message}{suggestion(name, names)}", code="profile", hint=_names_hint(names))


def _names_hint(names: list[str]) -> str:
    if not names:
        return "no profiles are configured"
    listed = ", ".join(quote_value(name) for name in names[:20])
    return f"the profiles are {listed}{' and more' if len(names) > 20 else ''}"
