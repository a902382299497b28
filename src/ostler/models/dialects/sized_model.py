"""A model that edits in the text of its answers if it is small, else with API tool calls."""

from collections.abc import AsyncGenerator, Mapping, Sequence

import msgspec

from ostler.core.tools import ToolSpec
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.dialects.dialect import apply_dialect
from ostler.models.http_model import HttpModel
from ostler.models.model_types import ModelClient, ModelRequest, ReplyChunk

MAX_SMALL_REPLY = 2_000  # tokens in a reply of a small model, if the profile sets no limit


class SizedModel(ModelClientWrapper):
    """Uses the files dialect for a small model, else the native one; from the first request on, always the same."""

    def __init__(
        self,
        client: HttpModel,
        *,
        aliases: Mapping[str, str],
        edits_in_text: bool | None = None,
        asks_size: bool = False,
    ) -> None:
        """`edits_in_text` is the profile's decision; None leaves it to the model's size.

        With `asks_size`, the first request waits a moment for what the server reports about the size.
        """
        super().__init__(apply_dialect(client, "native", aliases=aliases))
        self._http_model = client
        self._aliases = aliases
        self._decision = edits_in_text
        self._is_configured = edits_in_text is not None
        self._asks_size = asks_size
        self._small_client: ModelClient | None = None

    @property
    def edits_in_text(self) -> bool:
        """Whether the model edits in the text of its answers."""
        return self._http_model.is_small if self._decision is None else self._decision

    async def learn_size(self) -> None:
        """Wait a moment for what the server reports, if that decides how the model edits."""
        if self._decision is None and self._asks_size:
            await self._http_model.wait_for_size()

    @property
    def size_advice(self) -> str:
        """Advice for the user if the server reported after the first request that the model is small."""
        if self._is_configured or self._decision is not False or not self._http_model.is_small:
            return ""
        return f'{self.name} is small: with "editing": "text" in its profile it can do more'

    def guide_size(self, tools: Sequence[ToolSpec]) -> int | None:
        """Return the bytes of the tool descriptions in the system prompt, or None if the API declares them."""
        return 0 if self.edits_in_text else None

    def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        self._decision = self.edits_in_text
        if not self._decision:
            return super().stream(request)
        if self._small_client is None:
            self._small_client = apply_dialect(self._http_model, "files", aliases=self._aliases)
        return self._small_client.stream(self._with_defaults(request))

    def _with_defaults(self, request: ModelRequest) -> ModelRequest:
        """Return the request with defaults for small models: they copy better without chance, and may never end."""
        has_temperature = self._http_model.has_temperature or request.temperature is not None
        limit = request.max_tokens or self._http_model.max_reply_tokens or MAX_SMALL_REPLY
        return msgspec.structs.replace(
            request, temperature=request.temperature if has_temperature else 0.0, max_tokens=limit
        )
