"""Which model is meant, behind which endpoint, with which key."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ostler.settings.catalogue import Candidate, catalogue
from ostler.settings.choice import by_name, choose, nobody
from ostler.settings.effective import Settings
from ostler.settings.environment import first_set
from ostler.settings.hosts import VENDORS, host_of, vendor_at
from ostler.settings.masking import Quiet, masked
from ostler.settings.problems import quoted
from ostler.settings.references import fill, unset
from ostler.settings.schema_models import ApiKind, Dialect, Price, ProfileEntry
from ostler.settings.secret import Secret
from ostler.vocabulary.errors import UsageError

# MD-3: these come before the key of the profile itself, and DASHSCOPE_API_KEY after everything.
_KEYS_FIRST = ("OSTLER_API_KEY", "AGENT_API_KEY", "SILICONFLOW_API_KEY", "SILICONFLOW_TOKEN")
_KEY_LAST = "DASHSCOPE_API_KEY"
MODEL_KEYS = (*_KEYS_FIRST, *dict.fromkeys(vendor.key_variable for vendor in VENDORS.values() if vendor.key_variable))
# The code of the error about a variable that a profile needs and that is not set.
UNSET = "key_unset"


# Where the three forms of a profile keep what may hold references.
_SPELLINGS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "apiKey": (("apiKey",), ("api_key",), ("options", "apiKey")),
    "baseUrl": (("baseUrl",), ("base_url",), ("options", "baseURL"), ("api",)),
    "headers": (("headers",), ("options", "headers")),
    "proxy": (("proxy",),),
}


class Profile(Quiet, frozen=True, kw_only=True):
    """A model ready to be called. `key_from` says who gave the key.

    Without `base_url` only a model was named: whoever finds a local server fills it in. Without `model` the
    server's own one is meant.
    """

    name: str
    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_kind: ApiKind = "openai"
    dialect: Dialect = "native"
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
    price: Price | None = None


_SHARED = tuple(name for name in Profile.__struct_fields__ if name in ProfileEntry.__struct_fields__)


def active(
    settings: Settings, env: Mapping[str, str], *, flag_model: str = "", flag_key: str = "", flag_base_url: str = ""
) -> Profile | None:
    """The profile in use, or nothing when nothing is configured."""
    base_url = flag_base_url or env.get(first_set(env, "OSTLER_BASE_URL", "AGENT_BASE_URL"), "")
    candidates = catalogue(settings)
    if base_url and not candidates:
        candidates = [Candidate(ProfileEntry(name="environment", base_url=base_url), ())]
    chosen = choose(settings, candidates, flag_model)
    if chosen is None:
        return None
    if base_url:
        chosen = chosen._replace(entry=msgspec.structs.replace(chosen.entry, base_url=base_url))
    keys = [("flag", flag_key), *((name, env.get(name, "")) for name in _KEYS_FIRST)]
    return _Resolver(settings, env, chosen).profile(first=keys, last=[(_KEY_LAST, env.get(_KEY_LAST, ""))])


def named(settings: Settings, env: Mapping[str, str], name: str) -> Profile:
    """A profile other than the one in use (a fallback, a small model): only its own key and its host's variable."""
    candidates = catalogue(settings)
    found = by_name(settings, candidates, name)
    if found is None:
        raise nobody(f"there is no profile {quoted(name)}", name, candidates)
    return _Resolver(settings, env, found).profile(first=[], last=[])


def unset_in(entry: ProfileEntry, env: Mapping[str, str]) -> list[str]:
    """The variables that a profile refers to and that are not set."""
    secrets = (entry.api_key, entry.proxy, *entry.headers.values())
    return [name for secret in (*secrets, Secret(entry.base_url)) if secret for name in unset(secret.reveal(), env)]


class _Resolver:
    """Turns a profile as it is written into one that can be called."""

    def __init__(self, settings: Settings, env: Mapping[str, str], candidate: Candidate) -> None:
        self.env = env
        self.entry = candidate.entry
        self.key_variables = candidate.key_variables
        self.settings = settings
        self.path = candidate.path

    @property
    def where(self) -> str:
        name = quoted(self.entry.name)
        return f"{self.settings.origin(self.path)}: {name}" if self.path else name

    def profile(self, *, first: list[tuple[str, str]], last: list[tuple[str, str]]) -> Profile:
        base_url = self._endpoint()
        keys = ((name, key.strip()) for name, key in self._keys(base_url, first, last))
        key_from, key = next((found for found in keys if found[1]), ("", ""))
        if not key.isprintable():
            raise UsageError(f"the key from {key_from} has a line break or a control character in it; remove it")
        if not key:
            self._insist(self.entry.api_key, "apiKey")
        for value in (*self.entry.headers.values(), self.entry.proxy):
            self._insist(value, "proxy" if value is self.entry.proxy else "headers")
        headers = {name: self._filled(value, "headers") for name, value in self.entry.headers.items()}
        settled: dict[str, Any] = {
            "base_url": base_url,
            "api_kind": self._api_kind(base_url),
            "key": Secret(key) if key else None,
            "key_from": key_from,
            "headers": {name: Secret(value) for name, value in headers.items() if value},
            "proxy": Secret(proxy) if (proxy := self._filled(self.entry.proxy, "proxy")) else None,
        }
        as_written = {name: getattr(self.entry, name) for name in _SHARED if name not in settled}
        return Profile(**as_written, **settled)

    def _keys(
        self, base_url: str, first: list[tuple[str, str]], last: list[tuple[str, str]]
    ) -> Iterator[tuple[str, str]]:
        """Every key there may be, with who gives it, in the order in which they count; nothing is read too early."""
        yield from first
        yield "profile", self._filled(self.entry.api_key, "apiKey")
        vendor = vendor_at(base_url)
        for name in (*self.key_variables, vendor.key_variable if vendor else ""):
            yield name, self.env.get(name, "")
        yield from last

    def _endpoint(self) -> str:
        entry, vendor = self.entry, VENDORS.get(self.entry.provider.lower())
        if not entry.base_url and (vendor or not self.path):
            return vendor.base_url if vendor else ""
        if not entry.base_url:
            known = f", for {quoted(entry.provider)} is no vendor that Ostler knows" if entry.provider else ""
            raise UsageError(f"{self.where} needs a baseUrl{known}")
        self._insist(Secret(entry.base_url), "baseUrl")
        url = self._fill(entry.base_url, "baseUrl")
        if not url.lower().startswith(("http://", "https://")) or not host_of(url) or " " in url:
            raise UsageError(f"{self.where} needs a baseUrl such as http://localhost:8000/v1, not {_safe(url)}")
        return url.rstrip("/")

    def _api_kind(self, base_url: str) -> ApiKind:
        vendor = VENDORS.get(self.entry.provider.lower()) or vendor_at(base_url)
        return self.entry.api_kind or (vendor.api_kind if vendor else "openai")

    def _insist(self, secret: Secret | None, what: str) -> None:
        """What is written for a server must reach it: a variable that is not set would quietly leave it out."""
        missing = unset(secret.reveal(), self.env) if secret else []
        if missing:
            raise UsageError(
                f"{self.where} {what} needs the variable {missing[0]}, which is not set",
                code=UNSET,
                hint=f"set {missing[0]} in the environment, or take the reference out",
            )

    def _filled(self, secret: Secret | None, what: str) -> str:
        return self._fill(secret.reveal(), what) if secret else ""

    def _fill(self, text: str, what: str) -> str:
        return fill(text, self.env, lambda: self._folder(what), lambda: f"{self.where} {what}")

    def _folder(self, what: str) -> Path:
        """The folder of the file that says this: a relative `{file:…}` starts there."""
        origins = (self.settings.origin((*self.path, *steps)) for steps in _SPELLINGS.get(what, ()))
        return Path(next((origin.file for origin in origins if origin.line), "")).parent


def _safe(url: str) -> str:
    return quoted(masked(url).partition("?")[0]) if url else "an empty one"
