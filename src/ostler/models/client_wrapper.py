"""Base class for model clients that wrap another client."""

from collections.abc import AsyncGenerator, Sequence

from ostler.core.tools import ToolSpec
from ostler.models.model_types import CallForm, ModelClient, ModelPrice, ModelRequest, ReasoningForm, ReplyChunk


class ModelClientWrapper:
    """Delegates everything to the wrapped client."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def context_limit(self) -> int:
        return self._client.context_limit

    @property
    def price(self) -> ModelPrice:
        return self._client.price

    @property
    def max_reply_tokens(self) -> int | None:
        return self._client.max_reply_tokens

    @property
    def reasoning(self) -> ReasoningForm:
        return self._client.reasoning

    @property
    def called_by(self) -> CallForm:
        return self._client.called_by

    def guide_size(self, tools: Sequence[ToolSpec]) -> int | None:
        return self._client.guide_size(tools)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        return self._client.stream(request)

    async def fetch_window(self) -> int:
        return await self._client.fetch_window()

    async def wait_for_window(self) -> None:
        await self._client.wait_for_window()

    @property
    def edits_in_text(self) -> bool:
        return self._client.edits_in_text

    @property
    def size_advice(self) -> str:
        return self._client.size_advice

    async def learn_size(self) -> None:
        await self._client.learn_size()

    async def aclose(self) -> None:
        await self._client.aclose()
