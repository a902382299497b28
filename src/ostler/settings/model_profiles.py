"""Resolves a model profile: endpoint, API key, headers and limits."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from ostler.core.errors import UsageError
from ostler.settings.effective import Settings
from ostler.settings.env_layers import first_set_variable
from ostler.settings.masking import MaskedRepr, mask_secrets
from ostler.settings.model_catalogue import ModelCandidate, list_candidates
from ostler.settings.model_choice import choose_model, find_candidate, unknown_model_error
from ostler.settings.problems import quote_value
from ostler.settings.references import fill_references, unset_variables
from ostler.settings.schema_models import ApiKind, DialectName, EditingName, PriceConfig, ProfileEntry
from ostler.settings.secret import Secret
from ostler.settings.vendors import VENDORS, host_of, vendor_for_url

# These are tried before the key of the active profile; the variables of its vendor come after it.
_OWN_KEY_VARIABLES = ("OSTLER_API_KEY", "AGENT_API_KEY")
MODEL_KEY_VARIABLES = (
    *_OWN_KEY_VARIABLES,
    *dict.fromkeys(name for vendor in VENDORS.values() for name in vendor.key_variables),
)
# Code of the error for a variable that a profile needs but that is not set.
UNSET_VARIABLE_CODE = "key_unset"


# Paths of the fields that may contain references, in the three forms of a profile.
_FIELD_PATHS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "apiKey": (("apiKey",), ("api_key",), ("options", "apiKey")),
    "baseUrl": (("baseUrl",), ("base_url",), ("options", "baseURL"), ("api",)),
    "headers": (("headers",), ("options", "headers")),
    "proxy": (("proxy",),),
}


class Profile(MaskedRepr, frozen=True, kw_only=True):
    """A resolved model profile. `key_from` names the source of the key.

    An empty `base_url` means that only a model was named; the search for local servers fills it in. An empty `model`
    means the server's default model.
    """

    name: str
    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_kind: ApiKind = "openai"
    dialect: DialectName = "native"
    editing: EditingName | None = None
    key: Secret | None = None
    key_from: str = ""
    context: int | None = None
    max_output_tokens: int | None = None
    small: str = ""
    temperature: float | None = None
    top_p: float | None = None
    thinking: Literal["off", "low", "medium", "high"] | None = None
    headers: dict[str, Secret] = msgspec.field(default_factory=dict)
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    fallback: tuple[str, ...] = ()
    timeout: float | None = None
    ca: str = ""
    client_cert: str = ""
    client_key: str = ""
    proxy: Secret | None = None
    price: PriceConfig | None = None


_SHARED_FIELDS = tuple(name for name in Profile.__struct_fields__ if name in ProfileEntry.__struct_fields__)


def active_profile(
    settings: Settings, env: Mapping[str, str], flags: Mapping[str, str] = MappingProxyType({})
) -> Profile | None:
    """Return the profile to use, or None if no model is configured. Raises `UsageError`.

    The flags `model`, `api_key` and `base_url` override settings and environment.
    """
    base_url = flags.get("base_url") or env.get(first_set_variable(env, "OSTLER_BASE_URL", "AGENT_BASE_URL"), "")
    candidates = list_candidates(settings)
    if base_url and not candidates:
        candidates = [ModelCandidate(ProfileEntry(name="environment", base_url=base_url), ())]
    chosen = choose_model(settings, candidates, flags.get("model", ""))
    if chosen is None:
        return None
    keys = [("flag", flags.get("api_key", "")), *((name, env.get(name, "")) for name in _OWN_KEY_VARIABLES)]
    eidolon_variables = () if base_url else _eidolon_key_variables(settings, chosen)
    if base_url:  # the variables belong to the endpoint of the settings
        chosen = chosen._replace(entry=msgspec.structs.replace(chosen.entry, base_url=base_url), key_variables=())
    keys += ((name, env.get(name, "")) for name in eidolon_variables)
    return _ProfileResolver(settings, env, chosen).resolve(keys)


def profile_by_name(settings: Settings, env: Mapping[str, str], name: str) -> Profile:
    """Return a profile other than the active one (a fallback, a small model).

    Its key comes only from the profile itself or its vendor's variable. Raises `UsageError`.
    """
    candidates = list_candidates(settings)
    found = find_candidate(settings, candidates, name)
    if found is None:
        raise unknown_model_error(f"there is no profile {quote_value(name)}", name, candidates)
    return _ProfileResolver(settings, env, found).resolve([])


def _eidolon_key_variables(settings: Settings, candidate: ModelCandidate) -> tuple[str, ...]:
    """Return the variables that override the key of a profile in one of Eidolon's own config files."""
    base_urls = ((*candidate.path, *steps) for steps in _FIELD_PATHS["baseUrl"])
    origins = [settings.origin(path) for path in (candidate.path, *base_urls) if candidate.path]
    files = [Path(origin.file) for origin in origins if origin.line]
    is_eidolon = all(file.name == ".eidolon.json" or file.parent.name == ".eidolon" for file in files)
    return VENDORS["siliconflow"].key_variables if files and is_eidolon else ()


def describe_key_source(key_from: str) -> str:
    """Return the source of a key in words, from `Profile.key_from`."""
    return {"flag": "--api-key", "profile": "the profile"}.get(key_from, key_from)


def unset_profile_variables(entry: ProfileEntry, env: Mapping[str, str]) -> list[str]:
    """Return the variables that a profile refers to but that are not set."""
    secrets = (entry.api_key, entry.proxy, *entry.headers.values())
    return [
        name
        for secret in (*secrets, Secret(entry.base_url))
        if secret
        for name in unset_variables(secret.reveal(), env)
    ]


class _ProfileResolver:
    """Resolves the references, the endpoint and the key of a configured profile."""

    def __init__(self, settings: Settings, env: Mapping[str, str], candidate: ModelCandidate) -> None:
        self.env = env
        self.entry = candidate.entry
        self.key_variables = candidate.key_variables
        self.settings = settings
        self.path = candidate.path

    @property
    def location(self) -> str:
        name = quote_value(self.entry.name)
        return f"{self.settings.origin(self.path)}: {name}" if self.path else name

    def resolve(self, first_keys: list[tuple[str, str]]) -> Profile:
        """Resolve the profile. `first_keys` are keys with their sources that override the profile's own key."""
        base_url = self._endpoint()
        keys = ((name, key.strip()) for name, key in self._keys(base_url, first_keys))
        key_from, key = next((found for found in keys if found[1]), ("", ""))
        if not key.isprintable():
            raise UsageError(f"the API key from {key_from} contains a line break or a control character; remove it")
        if not key:
            self._require_variables(self.entry.api_key, "apiKey")
        for value in (*self.entry.headers.values(), self.entry.proxy):
            self._require_variables(value, "proxy" if value is self.entry.proxy else "headers")
        headers = {name: self._fill_secret(value, "headers") for name, value in self.entry.headers.items()}
        resolved: dict[str, Any] = {
            "base_url": base_url,
            "api_kind": self._api_kind(base_url),
            "key": Secret(key) if key else None,
            "key_from": key_from,
            "headers": {name: Secret(value) for name, value in headers.items() if value},
            "proxy": Secret(proxy) if (proxy := self._fill_secret(self.entry.proxy, "proxy")) else None,
        }
        unchanged = {name: getattr(self.entry, name) for name in _SHARED_FIELDS if name not in resolved}
        return Profile(**unchanged, **resolved)

    def _keys(self, base_url: str, first_keys: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield the possible keys with their sources in order of precedence, read only when needed."""
        yield from first_keys
        yield "profile", self._fill_secret(self.entry.api_key, "apiKey")
        vendor = vendor_for_url(base_url)
        for name in (*self.key_variables, *(vendor.key_variables if vendor else ())):
            yield name, self.env.get(name, "")

    def _endpoint(self) -> str:
        entry, vendor = self.entry, VENDORS.get(self.entry.provider.lower())
        if not entry.base_url and (vendor or not self.path):
            return vendor.base_url if vendor else ""
        if not entry.base_url:
            reason = f": {quote_value(entry.provider)} is not a known vendor" if entry.provider else ""
            raise UsageError(f"{self.location} needs a baseUrl{reason}")
        self._require_variables(Secret(entry.base_url), "baseUrl")
        url = self._fill(entry.base_url, "baseUrl")
        if not url.lower().startswith(("http://", "https://")) or not host_of(url) or " " in url:
            raise UsageError(f"{self.location} needs a baseUrl such as http://localhost:8000/v1, not {_safe_url(url)}")
        return url.rstrip("/")

    def _api_kind(self, base_url: str) -> ApiKind:
        vendor = VENDORS.get(self.entry.provider.lower()) or vendor_for_url(base_url)
        return self.entry.api_kind or (vendor.api_kind if vendor else "openai")

    def _require_variables(self, secret: Secret | None, field: str) -> None:
        """Raise `UsageError` if a variable is not set; otherwise the value would be omitted silently."""
        missing = unset_variables(secret.reveal(), self.env) if secret else []
        if missing:
            raise UsageError(
                f"{self.location} {field} needs the variable {missing[0]}, which is not set",
                code=UNSET_VARIABLE_CODE,
                hint=f"set {missing[0]} in the environment, or remove the reference",
            )

    def _fill_secret(self, secret: Secret | None, field: str) -> str:
        return self._fill(secret.reveal(), field) if secret else ""

    def _fill(self, text: str, field: str) -> str:
        return fill_references(text, self.env, lambda: self._folder(field), lambda: f"{self.location} {field}")

    def _folder(self, field: str) -> Path:
        """Return the folder of the file that sets the field; relative `{file:…}` paths start there."""
        origins = (self.settings.origin((*self.path, *steps)) for steps in _FIELD_PATHS.get(field, ()))
        return Path(next((origin.file for origin in origins if origin.line), "")).parent


def _safe_url(url: str) -> str:
    return quote_value(mask_secrets(url).partition("?")[0]) if url else "an empty one"
