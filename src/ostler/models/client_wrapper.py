"""Base class for model clients that wrap another client."""

from collections.abc import AsyncIterator
from typing import Any

from ostler.models.model_types import ModelClient, ModelRequest, ReplyChunk


class ModelClientWrapper:
    """Delegates everything to the wrapped client, also optional attributes (`price`, `guide_size` …)."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        """The model's id."""
        return self._client.name

    @property
    def context_limit(self) -> int:
        """The context window in tokens; a default if it is unknown."""
        return self._client.context_limit

    def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        return self._client.stream(request)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._client, name)
