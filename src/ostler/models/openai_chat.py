"""The client of OpenAI-compatible chat completions."""

from typing import TYPE_CHECKING

from ostler.models.http_model import HttpModel, HttpModelConfig
from ostler.models.model_types import ModelRequest
from ostler.models.openai_request import ServerQuirks, chat_body

if TYPE_CHECKING:
    from ostler.models.stream_reply import ReplyReader


class OpenAIChat(HttpModel):
    """A model behind `<base>/chat/completions`."""

    kind = "openai"
    endpoint = "chat/completions"

    def __init__(self, config: HttpModelConfig) -> None:
        super().__init__(config)
        self._quirks = ServerQuirks()

    def _auth_headers(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._config.api_key}"),) if self._config.api_key else ()

    def _encode_body(self, request: ModelRequest) -> bytes:
        return chat_body(self.name, request, self._quirks, self._config.extra)

    def _make_reader(self, request: ModelRequest) -> "ReplyReader":
        from ostler.models.openai_reply import OpenAIReader

        return OpenAIReader(self._config.http.origin.address, request, self._config.secret_mask)

    def _adapt(self, error_text: str, request: ModelRequest) -> bool:
        quirks = self._quirks.adapt(error_text, request)
        self._quirks = quirks or self._quirks
        return quirks is not None
