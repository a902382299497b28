"""A model client over another: whoever changes one thing about a client changes only that."""

from collections.abc import AsyncIterator
from typing import Any

from ostler.models.model_types import ModelClient, ModelRequest, ReplyChunk


class ModelClientWrapper:
    """Passes everything on, also what only some clients have (`price`, `learned`, `guide_size` …)."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        """The model's id."""
        return self._client.name

    @property
    def context_limit(self) -> int:
        """The window in tokens, as far as it is known."""
        return self._client.context_limit

    def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """One reply."""
        return self._client.stream(request)

    async def aclose(self) -> None:
        """End the connection."""
        await self._client.aclose()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._client, name)
