"""Schema of providers, models and profiles, in each supported form.

A line `name: text` in a class docstring is the description of that key in the published JSON Schema.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from ostler.core.sessions import Thinking
from ostler.settings.masking import MaskedRepr
from ostler.settings.secret import Secret

ApiKind = Literal["openai", "anthropic"]
DialectName = Literal["native", "xnl", "text"]
EditingName = Literal["tools", "text"]
PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
NonNegativeFloat = Annotated[float, msgspec.Meta(ge=0)]
SamplingTemperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
Fraction = Annotated[float, msgspec.Meta(gt=0, le=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ConfigSection(MaskedRepr, frozen=True, forbid_unknown_fields=True):
    """A section of the config.

    `aliases` maps other spellings of keys to the canonical ones. `renamed` maps former names of keys to the current
    ones; if a file has both, the current one wins.
    """

    aliases: ClassVar[Mapping[str, str]] = {}
    renamed: ClassVar[Mapping[str, str]] = {}


class PriceConfig(ConfigSection, frozen=True):
    """Price of a million tokens in US dollars.

    input: US dollars per million tokens sent.
    output: US dollars per million tokens received.
    cached: US dollars per million tokens sent that the server already had in its cache.
    """

    input: NonNegativeFloat = 0
    output: NonNegativeFloat = 0
    cached: NonNegativeFloat | None = None


class ProfileEntry(ConfigSection, frozen=True, rename="camel"):
    """A named model behind an endpoint.

    name: Name of the profile, for `models.active`, `/models` and `--model`.
    provider: Vendor of the endpoint; a well-known vendor needs no base URL.
    model: Id of the model at the endpoint.
    apiKey: API key, preferably as {env:NAME} or {file:path}.
    baseUrl: URL of the endpoint, up to and including /v1.
    apiKind: API that the endpoint implements.
    dialect: How tools are called: API calls (native), `tool_call` blocks in the text (text), or XNL (xnl).
    editing: How the model edits: with tool calls (tools), or in the text of its answer, for small models (text).
    context: Size of the context window in tokens.
    maxOutputTokens: Maximum number of tokens in a reply.
    small: Profile or model id for titles and summaries.
    temperature: Sampling temperature, from 0 to 2.
    topP: Nucleus sampling: the share of probability to sample from, up to 1.
    thinking: How much the model should reason, if the API supports it.
    headers: HTTP headers to send with each request; values may contain {env:NAME} and {file:path}.
    options: Members to add unchanged to the body of each request.
    fallback: Profiles to use, in this order, when this one fails.
    timeout: Seconds without any data from the server after which a request is cancelled.
    ca: File with the certificates to trust, for an endpoint that has its own.
    clientCert: File with the client certificate, for an endpoint that requires one.
    clientKey: File with the key of the client certificate, if it is not in the same file.
    proxy: URL of an HTTP proxy.
    price: Price of tokens, for a model whose price is not built in.
    """

    aliases: ClassVar[Mapping[str, str]] = {
        "api_key": "apiKey",
        "base_url": "baseUrl",
        "baseURL": "baseUrl",
        "api_kind": "apiKind",
        "max_output_tokens": "maxOutputTokens",
        "top_p": "topP",
    }

    name: Annotated[str, msgspec.Meta(min_length=1)]
    provider: str = ""
    model: str = ""
    api_key: Secret | None = None
    base_url: str = ""
    api_kind: ApiKind | None = None
    dialect: DialectName = "native"
    editing: EditingName | None = None
    context: PositiveInt | None = None
    max_output_tokens: PositiveInt | None = None
    small: str = ""
    temperature: SamplingTemperature | None = None
    top_p: Fraction | None = None
    thinking: Thinking | None = None
    headers: dict[str, Secret] = msgspec.field(default_factory=dict)
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    fallback: tuple[str, ...] = ()
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    ca: str = ""
    client_cert: str = ""
    client_key: str = ""
    proxy: Secret | None = None
    price: PriceConfig | None = None


class ModelsConfig(ConfigSection, frozen=True):
    """Model profiles, and the name of the active one.

    profiles: Models behind endpoints; a profile replaces one with the same name in an earlier file.
    active: Name of the profile to use.
    """

    profiles: tuple[ProfileEntry, ...] = ()
    active: str | None = None


class Provider(ConfigSection, frozen=True):
    """One endpoint without a name: the short form.

    name: Vendor of the endpoint; a well-known vendor needs no base URL.
    base_url: URL of the endpoint, up to and including /v1.
    model: Id of the model at the endpoint.
    models: Ids of further models to choose from.
    api_key: API key, preferably as {env:NAME} or {file:path}.
    api_kind: API that the endpoint implements.
    timeout_ms: Milliseconds without any data from the server after which a request is cancelled.
    """

    aliases: ClassVar[Mapping[str, str]] = {
        "provider": "name",
        "baseUrl": "base_url",
        "baseURL": "base_url",
        "apiKey": "api_key",
        "apiKind": "api_kind",
    }

    name: str = ""
    base_url: str = ""
    model: str = ""
    models: tuple[str, ...] = ()
    api_key: Secret | None = None
    api_kind: ApiKind | None = None
    timeout_ms: PositiveInt | None = None


class ModelLimit(ConfigSection, frozen=True):
    """Limits of a model in tokens.

    context: Size of the context window.
    input: Maximum number of tokens in a request, if it is smaller than the context window.
    output: Maximum number of tokens in a reply.
    """

    context: PositiveInt | None = None
    input: PositiveInt | None = None
    output: PositiveInt | None = None


class NamedModel(ConfigSection, frozen=True):
    """A model of a named provider, as in OpenCode.

    name: Display name of the model, without effect here.
    limit: Limits of the model in tokens.
    options: Members to add unchanged to the body of each request.
    headers: HTTP headers to send with each request.
    cost: Price of a million tokens in US dollars.
    temperature: Whether the model accepts a temperature, without effect here.
    tool_call: Whether the model supports native tool calls; else the `text` dialect is used.
    reasoning: Whether the model reasons, without effect here.
    attachment: Whether the model accepts images, without effect here.
    """

    name: str = ""
    limit: ModelLimit = ModelLimit()
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    headers: dict[str, Secret] = msgspec.field(default_factory=dict)
    cost: dict[str, Any] = msgspec.field(default_factory=dict)
    temperature: bool | None = None
    tool_call: bool | None = None
    reasoning: bool | None = None
    attachment: bool | None = None


class ProviderOptions(ConfigSection, frozen=True, rename={"api_key": "apiKey", "base_url": "baseURL"}):
    """How to reach a named provider, as in OpenCode.

    apiKey: API key, preferably as {env:NAME} or {file:path}.
    baseURL: URL of the endpoint, up to and including /v1.
    headers: HTTP headers to send with each request.
    timeout: Milliseconds without any data after which a request is cancelled, or false for no timeout.
    """

    aliases: ClassVar[Mapping[str, str]] = {"api_key": "apiKey", "base_url": "baseURL", "baseUrl": "baseURL"}

    api_key: Secret | None = None
    base_url: str = ""
    headers: dict[str, Secret] = msgspec.field(default_factory=dict)
    timeout: PositiveInt | bool | None = None


class NamedProvider(ConfigSection, frozen=True):
    """A provider by id with its models, as in OpenCode; `model` then is "id/model".

    name: Display name of the provider.
    npm: Package that OpenCode would load; a package for Anthropic selects the Anthropic API.
    api: URL of the endpoint, if `options` has none.
    env: Environment variables that may contain the API key.
    options: How to reach the provider.
    models: Models by id.
    """

    name: str = ""
    npm: str = ""
    api: str = ""
    env: tuple[str, ...] = ()
    options: ProviderOptions = ProviderOptions()
    models: dict[str, NamedModel] = msgspec.field(default_factory=dict)
