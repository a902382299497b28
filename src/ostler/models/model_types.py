"""What the engine says to a model and hears from it: our own small types, whatever the vendor's are."""

from collections.abc import AsyncIterator
from typing import Literal, Protocol

import msgspec

from ostler.core.message import Message
from ostler.core.prompt import PromptContent
from ostler.core.tools import ToolResult, ToolSpec


class UserMessage(msgspec.Struct, frozen=True, tag="user"):
    """Words and pictures from the user's side."""

    blocks: tuple[PromptContent, ...]


class SystemMessage(msgspec.Struct, frozen=True, tag="system"):
    """A system message in mid-conversation; an API without that role gets it as a block ahead of the user's text."""

    text: str


class AssistantMessage(msgspec.Struct, frozen=True, tag="model"):
    """A message of the model's own, sent back as history."""

    message: Message


class ToolResultsMessage(msgspec.Struct, frozen=True, tag="tools"):
    """The results of all calls of the message before, in the order of the calls."""

    results: tuple[ToolResult, ...]


RequestMessage = UserMessage | SystemMessage | AssistantMessage | ToolResultsMessage


Thinking = Literal["off", "low", "medium", "high"]


class ModelRequest(msgspec.Struct, frozen=True):
    """One model call. A reply of more than `most_bytes` is cut off, for servers that do not heed `max_tokens`."""

    system: str
    history: tuple[RequestMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    thinking: Thinking | None = None
    max_bytes: int | None = None


class TextChunk(msgspec.Struct, frozen=True):
    """More of the answer: all that one read of the socket brought."""

    text: str


class ThoughtChunk(msgspec.Struct, frozen=True):
    """More of the reasoning."""

    text: str
    signature: str = ""


class TextWasThought(msgspec.Struct, frozen=True):
    """All text of this reply so far was reasoning, and what looked like calls in it were none.

    Some servers open the reasoning themselves, so that only its closing tag arrives. Holding every answer back for a
    tag that most never hold would end streaming; so the words pass as text, and this takes them back.
    """


class CallChunk(msgspec.Struct, frozen=True):
    """A call, whole: its name and its arguments as the text that came, which may be broken JSON.

    `begin` says that it and the calls before it may start now, while the reply goes on: nothing that follows can make
    them mean something else.
    """

    id: str
    tool: str
    arguments: str
    may_start: bool = False


class Usage(msgspec.Struct, frozen=True):
    """What the server counted, and the cost in US dollars where the price is known."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None


class NoData(msgspec.Struct, frozen=True):
    """Nothing has come for so many seconds; what came before still counts."""

    seconds: float
    reason: str


class RetryScheduled(msgspec.Struct, frozen=True):
    """The adapter will ask again in so many seconds; all of this reply that came is void."""

    attempt: int
    seconds: float
    reason: str


class FallbackStarted(msgspec.Struct, frozen=True):
    """Another profile's model begins the reply anew, for the one before could not answer; what came is void."""

    profile: str
    model: str
    reason: str


class RequestNote(msgspec.Struct, frozen=True):
    """Something about the request that a person asked to be told; no part of the reply."""

    text: str


class ReplyFinished(msgspec.Struct, frozen=True):
    """Last of a reply: why it is over. `filtered` is somebody else's doing, `refusal` the model's own.

    `told` is the server's word where it is none that we know.
    """

    reason: Literal["stop", "calls", "length", "refusal", "filtered", "other"]
    server_reason: str = ""


ReplyChunk = (
    TextChunk
    | ThoughtChunk
    | TextWasThought
    | CallChunk
    | Usage
    | NoData
    | RetryScheduled
    | FallbackStarted
    | RequestNote
    | ReplyFinished
)


class ModelClient(Protocol):
    """One model behind one endpoint. Failures are `BackendError`."""

    @property
    def name(self) -> str:
        """The model's id."""

    @property
    def context_limit(self) -> int:
        """The window in tokens, as far as it is known."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """One reply, always ending with `Finished`, else raising."""

    async def aclose(self) -> None: ...
