"""The terms on which a model is used: how it shall answer where a request does not say, and what it costs."""

import msgspec

from ostler.models.model_types import ModelRequest, Thinking, Usage

_MILLION = 1_000_000


class Sampling(msgspec.Struct, frozen=True):
    """What requests are sent with unless they say otherwise; None leaves it to the server."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    thinking: Thinking | None = None

    def apply_defaults(self, request: ModelRequest) -> ModelRequest:
        """The request with what it left open; no reply gets longer than the terms have it."""
        own = msgspec.structs.asdict(self)
        if self.max_tokens is not None and (request.max_tokens or 0) > self.max_tokens:
            request = msgspec.structs.replace(request, max_tokens=self.max_tokens)
        open_ones = {name: value for name, value in own.items() if value is not None and getattr(request, name) is None}
        return msgspec.structs.replace(request, **open_ones) if open_ones else request


class TokenPrice(msgspec.Struct, frozen=True):
    """US dollars for a million tokens; cached ones cost what others do unless it is said."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None

    def add_cost(self, usage: Usage) -> Usage:
        """The usage with its cost; `tokens_in` counts the cached ones too."""
        cached = min(usage.tokens_cached, usage.tokens_in)
        per_cached = self.input if self.cached is None else self.cached
        cost = (usage.tokens_in - cached) * self.input + cached * per_cached + usage.tokens_out * self.output
        return msgspec.structs.replace(usage, cost=cost / _MILLION)


class ModelSettings(msgspec.Struct, frozen=True):
    """Who provides the model, for the log, and on which terms; no price means that nobody knows it."""

    provider: str = ""
    sampling: Sampling = Sampling()
    price: TokenPrice | None = None
