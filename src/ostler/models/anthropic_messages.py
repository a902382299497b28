"""The client of the Anthropic messages API."""

import re
from typing import TYPE_CHECKING

from ostler.models.anthropic_request import ThinkingForm, messages_body
from ostler.models.http_model import HttpModel, Setup
from ostler.models.speech import least_of
from ostler.models.words import Request

if TYPE_CHECKING:
    from ostler.models.stream_reply import Reader

_MOST_OUT = 20_000


class AnthropicMessages(HttpModel):
    """A model behind `<base>/messages`."""

    kind = "anthropic"
    endpoint = "messages"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._most_out: int | None = None
        self._thinking: ThinkingForm = "budget"

    @property
    def longest_reply(self) -> int:
        """The API insists on a limit, so there is one where nobody sets it."""
        return super().longest_reply or _MOST_OUT

    def _key_headers(self) -> tuple[tuple[str, str], ...]:
        version = ("anthropic-version", "2023-06-01")
        return (("x-api-key", self._setup.key), version) if self._setup.key else (version,)

    def _body(self, request: Request) -> bytes:
        wanted = least_of(request.max_tokens, self._setup.extra.get("max_tokens")) or _MOST_OUT
        most = min(wanted, self._most_out or wanted)
        return messages_body(self.name, request, most, self._setup.extra, self._thinking)

    def _reader(self, request: Request) -> "Reader":
        from ostler.models.anthropic_reply import AnthropicReader

        return AnthropicReader(self._setup.http.origin.where, request, self._setup.hidden)

    def _learn(self, said: str, request: Request) -> bool:
        """The API insists on a limit and refuses one above the model's own, which it then names."""
        told = re.search(r"max_tokens: \d{1,9} > (\d{1,9})", said)
        if told is None or self._most_out is not None:
            return self._learn_thinking(said, request)
        self._most_out = int(told[1])
        return True

    def _learn_thinking(self, said: str, request: Request) -> bool:
        """Newer models settle their budget themselves, and some do not think at all."""
        named = any(word in said.lower() for word in ("thinking", "budget_tokens", "output_config", "effort"))
        if not named or request.thinking in (None, "off") or self._thinking == "none":
            return False
        self._thinking = "adaptive" if self._thinking == "budget" else "none"
        return True
