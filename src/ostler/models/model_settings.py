"""A model's default sampling settings, provider and price."""

import msgspec

from ostler.core.sessions import Thinking
from ostler.models.model_types import ModelRequest, TokenPrice


class Sampling(msgspec.Struct, frozen=True):
    """Default parameters of requests. None leaves a parameter to the server."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    thinking: Thinking | None = None

    def apply_defaults(self, request: ModelRequest) -> ModelRequest:
        """Return the request with unset parameters filled in and `max_tokens` limited to the default."""
        defaults = msgspec.structs.asdict(self)
        if self.max_tokens is not None and (request.max_tokens or 0) > self.max_tokens:
            request = msgspec.structs.replace(request, max_tokens=self.max_tokens)
        missing = {
            name: value for name, value in defaults.items() if value is not None and getattr(request, name) is None
        }
        return msgspec.structs.replace(request, **missing) if missing else request


class ModelSettings(msgspec.Struct, frozen=True):
    """Provider name (for the log), default parameters, price (None if unknown), and where the key is set."""

    provider: str = ""
    sampling: Sampling = Sampling()
    price: TokenPrice | None = None
    key_source: str = ""
