"""The shape of what a config says about endpoints and models, in each of the forms that people already have.

A line `name: text` in a class's docstring describes that field; the JSON Schema for editors is made of them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from ostler.settings.masking import MaskedRepr
from ostler.settings.secret import Secret

ApiKind = Literal["openai", "anthropic"]
DialectName = Literal["native", "xnl", "text"]
PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
NonNegativeFloat = Annotated[float, msgspec.Meta(ge=0)]
SamplingTemperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
Fraction = Annotated[float, msgspec.Meta(gt=0, le=1)]


class ConfigSection(MaskedRepr, frozen=True, forbid_unknown_fields=True):
    """Part of a config. `aliases` are other spellings of its keys, each with the one that we use."""

    aliases: ClassVar[Mapping[str, str]] = {}


class PriceConfig(ConfigSection, frozen=True):
    """What a million tokens cost, in US dollars.

    input: tokens sent.
    output: tokens received.
    cached: tokens sent that the server found in its cache.
    """

    input: NonNegativeFloat = 0
    output: NonNegativeFloat = 0
    cached: NonNegativeFloat | None = None


class ProfileEntry(ConfigSection, frozen=True, rename="camel"):
    """A model behind an endpoint, by name.

    name: what `models.active`, `/models` and `--model` call it.
    provider: the vendor; a well-known one brings its own base URL.
    model: the model's id at that endpoint.
    apiKey: the key, or better {env:NAME} or {file:path}.
    baseUrl: the endpoint, as far as /v1.
    apiKind: the API that the endpoint speaks.
    dialect: how tools are called: the API's own calls, XNL in the text, or calls found in the text.
    context: the window in tokens.
    maxOutputTokens: the most one reply may have.
    small: a profile or model id for titles and summaries.
    temperature: sampling temperature.
    topP: nucleus sampling.
    thinking: how much the model should reason, where the API can be told.
    headers: sent with each request; {env:NAME} and {file:path} work here too.
    options: put into the body of each request as they are.
    fallback: profiles to go on with when this one fails.
    timeout: seconds without a sign of life before a request is given up.
    ca: a file with the certificates to trust, for an endpoint with its own.
    clientCert: a file with the certificate to show to an endpoint that asks for one.
    clientKey: a file with the key of that certificate, where it is not in the same one.
    proxy: URL of an HTTP proxy.
    price: what tokens cost, where we do not know it.
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
    context: PositiveInt | None = None
    max_output_tokens: PositiveInt | None = None
    small: str = ""
    temperature: SamplingTemperature | None = None
    top_p: Fraction | None = None
    thinking: Literal["off", "low", "medium", "high"] | None = None
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
    """The profiles and the one in use.

    profiles: each a model behind an endpoint; the same name in a later file replaces the whole profile.
    active: the name of the profile in use.
    """

    profiles: tuple[ProfileEntry, ...] = ()
    active: str | None = None


class Provider(ConfigSection, frozen=True):
    """One endpoint, without a name: the short form.

    name: the vendor; a well-known one brings its own base URL.
    base_url: the endpoint, as far as /v1.
    model: the model's id at that endpoint.
    models: further ids to choose from.
    api_key: the key, or better {env:NAME} or {file:path}.
    api_kind: the API that the endpoint speaks.
    timeout_ms: milliseconds without a sign of life before a request is given up.
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
    """How much a model takes and gives, in tokens.

    context: the window.
    input: the most that may be sent.
    output: the most one reply may have.
    """

    context: PositiveInt | None = None
    input: PositiveInt | None = None
    output: PositiveInt | None = None


class NamedModel(ConfigSection, frozen=True):
    """A model of a named provider, as OpenCode writes it.

    name: what to show.
    limit: its sizes.
    options: put into the body of each request as they are.
    headers: sent with each request.
    cost: what a million tokens cost, in US dollars.
    temperature: whether the model takes one.
    tool_call: whether the model can call tools by itself.
    reasoning: whether the model reasons.
    attachment: whether the model takes pictures.
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
    """How to reach a named provider, as OpenCode writes it.

    apiKey: the key, or better {env:NAME} or {file:path}.
    baseURL: the endpoint, as far as /v1.
    headers: sent with each request.
    timeout: milliseconds, or false for none.
    """

    aliases: ClassVar[Mapping[str, str]] = {"api_key": "apiKey", "base_url": "baseURL", "baseUrl": "baseURL"}

    api_key: Secret | None = None
    base_url: str = ""
    headers: dict[str, Secret] = msgspec.field(default_factory=dict)
    timeout: PositiveInt | bool | None = None


class NamedProvider(ConfigSection, frozen=True):
    """A provider by id with its models, as OpenCode writes it; `model` then says "id/model".

    name: what to show.
    npm: the package OpenCode would load; one for Anthropic means that API.
    api: the endpoint, when options name none.
    env: variables that may hold the key.
    options: how to reach it.
    models: the models by id.
    """

    name: str = ""
    npm: str = ""
    api: str = ""
    env: tuple[str, ...] = ()
    options: ProviderOptions = ProviderOptions()
    models: dict[str, NamedModel] = msgspec.field(default_factory=dict)
