"""The client of the Anthropic messages API."""

import re
from typing import TYPE_CHECKING

from ostler.models.anthropic_request import ThinkingForm, messages_body
from ostler.models.http_model import HttpModel, HttpModelConfig
from ostler.models.model_types import ModelRequest
from ostler.models.request_content import min_limit

if TYPE_CHECKING:
    from ostler.models.stream_reply import ReplyReader

_MAX_OUTPUT_TOKENS = 20_000


class AnthropicMessages(HttpModel):
    """A model behind `<base>/messages`."""

    kind = "anthropic"
    endpoint = "messages"

    def __init__(self, config: HttpModelConfig) -> None:
        super().__init__(config)
        self._max_output_tokens: int | None = None
        self._thinking_form: ThinkingForm = "budget"

    @property
    def max_reply_tokens(self) -> int:
        """Maximum tokens of a reply. The API requires a limit, so there is a default."""
        return super().max_reply_tokens or _MAX_OUTPUT_TOKENS

    def _auth_headers(self) -> tuple[tuple[str, str], ...]:
        version = ("anthropic-version", "2023-06-01")
        return (("x-api-key", self._config.api_key), version) if self._config.api_key else (version,)

    def _encode_body(self, request: ModelRequest) -> bytes:
        requested = min_limit(request.max_tokens, self._config.extra.get("max_tokens")) or _MAX_OUTPUT_TOKENS
        max_tokens = min(requested, self._max_output_tokens or requested)
        return messages_body(self.name, request, max_tokens, self._config.extra, self._thinking_form)

    def _make_reader(self, request: ModelRequest) -> "ReplyReader":
        from ostler.models.anthropic_reply import AnthropicReader

        return AnthropicReader(self._config.http.origin.address, request, self._config.secret_mask)

    def _adapt(self, error_text: str, request: ModelRequest) -> bool:
        """Adopt the model's output limit if the error names it, else try another form of the thinking parameter."""
        match = re.search(r"max_tokens: \d{1,9} > (\d{1,9})", error_text)
        if match is None or self._max_output_tokens is not None:
            return self._adapt_thinking(error_text, request)
        self._max_output_tokens = int(match[1])
        return True

    def _adapt_thinking(self, error_text: str, request: ModelRequest) -> bool:
        """Switch from a thinking budget to adaptive thinking, then to none: newer models reject a budget."""
        mentions_thinking = any(
            word in error_text.lower() for word in ("thinking", "budget_tokens", "output_config", "effort")
        )
        if not mentions_thinking or request.thinking in (None, "off") or self._thinking_form == "none":
            return False
        self._thinking_form = "adaptive" if self._thinking_form == "budget" else "none"
        return True
