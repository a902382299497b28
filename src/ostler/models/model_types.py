"""Types between engine and model clients: request, messages, reply chunks, and the `ModelClient` protocol."""

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, Protocol

import msgspec

from ostler.core.message import Message
from ostler.core.prompt import PromptContent
from ostler.core.sessions import Thinking
from ostler.core.tools import ToolResult, ToolSpec


class UserMessage(msgspec.Struct, frozen=True, tag="user"):
    """Text, images and attachments from the user."""

    blocks: tuple[PromptContent, ...]


class SystemMessage(msgspec.Struct, frozen=True, tag="system"):
    """A system message in mid-conversation. For APIs without that role it becomes text in a user message."""

    text: str


class AssistantMessage(msgspec.Struct, frozen=True, tag="model"):
    """A message of the model, sent back as history."""

    message: Message


class ToolResultsMessage(msgspec.Struct, frozen=True, tag="tools"):
    """The results of all calls of the previous message, in the order of the calls."""

    results: tuple[ToolResult, ...]


RequestMessage = UserMessage | SystemMessage | AssistantMessage | ToolResultsMessage


ReasoningForm = Literal["", "field", "tags"]
CallForm = Literal["", "api", "text"]


class ModelRequest(msgspec.Struct, frozen=True):
    """One model call. Replies are truncated at `max_bytes`, for servers that ignore `max_tokens`."""

    system: str
    history: tuple[RequestMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    thinking: Thinking | None = None
    max_bytes: int | None = None


class TextChunk(msgspec.Struct, frozen=True):
    """The next part of the answer: all text of one socket read."""

    text: str


class ThoughtChunk(msgspec.Struct, frozen=True):
    """The next part of the reasoning. A signature ends the block."""

    text: str
    signature: str = ""


class TextReclassified(msgspec.Struct, frozen=True):
    """All text of this reply so far was reasoning, and any calls found in it are void.

    Some servers omit the opening tag, so that only the closing tag marks the text before it as reasoning. Waiting for
    that tag in every reply would prevent streaming, so the text is streamed first and reclassified by this chunk.
    """


class CallChunk(msgspec.Struct, frozen=True):
    """A complete call. `arguments` is JSON or the text as received, which may be invalid JSON.

    `source` is the whole call as the model wrote it, if it was found in the text of the answer.

    With `may_start` this call and the calls before it may start while the rest of the reply is still arriving.
    """

    id: str
    tool: str
    arguments: str
    may_start: bool = False
    source: str = ""


class Usage(msgspec.Struct, frozen=True):
    """Token counts reported by the server, and the cost in US dollars if the price is known."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None


class TokenPrice(msgspec.Struct, frozen=True):
    """Price in US dollars per million tokens. Without `cached`, cached tokens cost as much as other input."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None

    def add_cost(self, usage: Usage) -> Usage:
        """Return the usage with its cost. `tokens_in` includes the cached tokens."""
        cached = min(usage.tokens_cached, usage.tokens_in)
        per_cached = self.input if self.cached is None else self.cached
        cost = (usage.tokens_in - cached) * self.input + cached * per_cached + usage.tokens_out * self.output
        return msgspec.structs.replace(usage, cost=cost / 1_000_000)


# None if it is unknown, "reported" if only replies report a cost.
ModelPrice = TokenPrice | Literal["reported"] | None


class NoData(msgspec.Struct, frozen=True):
    """No data has arrived for `seconds`. Earlier chunks remain valid."""

    seconds: float
    reason: str


class RetryScheduled(msgspec.Struct, frozen=True):
    """The request is sent again in `seconds`. All earlier chunks of this reply are void."""

    attempt: int
    seconds: float
    reason: str


class FallbackStarted(msgspec.Struct, frozen=True):
    """The model of another profile restarts the reply. All earlier chunks of this reply are void."""

    profile: str
    model: str
    reason: str


class RequestNote(msgspec.Struct, frozen=True):
    """Information about the request for the user, such as its cache prefix. Not part of the reply."""

    text: str


class ReplyFinished(msgspec.Struct, frozen=True):
    """The last chunk of a reply, with the reason it ended: `filtered` by the provider, `refusal` by the model.

    `server_reason` is the server's own reason if it is unknown.
    """

    reason: Literal["stop", "calls", "length", "refusal", "filtered", "other"]
    server_reason: str = ""


ReplyChunk = (
    TextChunk
    | ThoughtChunk
    | TextReclassified
    | CallChunk
    | Usage
    | NoData
    | RetryScheduled
    | FallbackStarted
    | RequestNote
    | ReplyFinished
)


class ModelClient(Protocol):
    """One model at one endpoint. Its methods raise `BackendError`. A class gets defaults from `ModelClientDefaults`."""

    @property
    def name(self) -> str:
        """The model's id."""

    @property
    def context_limit(self) -> int:
        """The context window in tokens; a default if it is unknown."""

    @property
    def price(self) -> ModelPrice:
        """The token price."""

    @property
    def max_reply_tokens(self) -> int | None:
        """The maximum tokens in a reply, or None without a limit."""

    @property
    def reasoning(self) -> ReasoningForm:
        """How the server marks reasoning; empty if none was seen."""

    @property
    def called_by(self) -> CallForm:
        """Where the model's last call was found."""

    def guide_size(self, tools: Sequence[ToolSpec]) -> int | None:
        """Return how many bytes the tool instructions take, or None if tools are sent in the API's own form."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """Stream one reply. It ends with `ReplyFinished`, or raises."""

    async def fetch_window(self) -> int:
        """Ask the server for the context window and return `context_limit`."""

    async def wait_for_window(self) -> None:
        """Wait a few seconds for the context window if it is being fetched."""

    @property
    def edits_in_text(self) -> bool:
        """Whether the model edits in the text of its answers, because it is small."""

    @property
    def size_advice(self) -> str:
        """Advice for the user about a small model, or an empty string."""

    async def learn_size(self) -> None:
        """Wait a moment for what the server reports about the size, if that decides how the model edits."""

    async def aclose(self) -> None: ...


class ModelClientDefaults:
    """A model client's members for a model of which nothing but its replies is known."""

    @property
    def price(self) -> ModelPrice:
        return "reported"

    @property
    def max_reply_tokens(self) -> int | None:
        return None

    @property
    def reasoning(self) -> ReasoningForm:
        return ""

    @property
    def called_by(self) -> CallForm:
        return ""

    def guide_size(self, tools: Sequence[ToolSpec]) -> int | None:
        return None

    async def fetch_window(self: ModelClient) -> int:
        return self.context_limit

    async def wait_for_window(self) -> None:
        return

    @property
    def edits_in_text(self) -> bool:
        return False

    @property
    def size_advice(self) -> str:
        return ""

    async def learn_size(self) -> None:
        return
