"""How large a request is: bytes, and tokens as estimated from them and set right by what servers report."""

from ostler.core.message import CallPart, MessagePart, ThoughtPart
from ostler.core.prompt import EmbeddedResource, ImageContent, PromptContent, TextContent
from ostler.core.tools import ToolResult
from ostler.models.model_types import AssistantMessage, RequestMessage, ToolResultsMessage, UserMessage

BYTES_PER_TOKEN = 3.6
# No tokenizer is outside these on any text; a server that reports such counts does not mean them.
PLAUSIBLE_RATIOS = (0.8, 16.0)
# A new report counts as much as all before it: what a conversation is about changes slowly.
NEW_REPORT_WEIGHT = 0.5
# So many bytes must have come since the last report for their worth to be told from it.
MIN_NEW_BYTES = 500
FRAME_BYTES = 16
IMAGE_BYTES = 4800


class TokenEstimator:
    """Tokens by bytes for one model: the last report, and what the bytes since then are worth by how reports grew."""

    def __init__(self) -> None:
        self.ratio = BYTES_PER_TOKEN
        self._size = 0
        self._tokens = 0

    def request_tokens(self, size: int) -> int:
        """The estimate for a request of so many bytes."""
        return max(round(self._tokens + (size - self._size) / self.ratio), int(size / PLAUSIBLE_RATIOS[1]))

    def tokens_for(self, size: int) -> int:
        """About how many tokens so many bytes are."""
        return round(size / self.ratio)

    def bytes_for(self, tokens: float) -> int:
        """About how many bytes so many tokens are."""
        return int(tokens * self.ratio)

    def calibrate(self, size: int, tokens: int) -> None:
        """A request of that size was counted as that many tokens."""
        if not tokens or not _is_plausible(size / tokens):
            return
        if not self._tokens:
            self.ratio = size / tokens
        elif size - self._size > MIN_NEW_BYTES and tokens > self._tokens:
            seen = (size - self._size) / (tokens - self._tokens)
            self.ratio += NEW_REPORT_WEIGHT * (seen - self.ratio) if _is_plausible(seen) else 0.0
        self._size, self._tokens = size, tokens


def _is_plausible(ratio: float) -> bool:
    return PLAUSIBLE_RATIOS[0] <= ratio <= PLAUSIBLE_RATIOS[1]


def message_size(message: RequestMessage) -> int:
    """The bytes that a message adds to a request, but for its punctuation."""
    if isinstance(message, AssistantMessage):
        return sum(map(_part_size, message.message.parts)) + FRAME_BYTES
    if isinstance(message, ToolResultsMessage):
        return sum(map(_result_size, message.results))
    if isinstance(message, UserMessage):
        return sum(map(_content_size, message.blocks)) + FRAME_BYTES
    return byte_size(message.text) + FRAME_BYTES


def _content_size(block: PromptContent) -> int:
    if isinstance(block, ImageContent):
        return IMAGE_BYTES
    if isinstance(block, TextContent):
        return byte_size(block.text)
    return (
        byte_size(block.uri)
        + (byte_size(block.text) if isinstance(block, EmbeddedResource) else byte_size(block.name))
        + FRAME_BYTES
    )


def _part_size(part: MessagePart) -> int:
    if isinstance(part, TextContent):
        return byte_size(part.text)
    if isinstance(part, CallPart):
        call = part.call
        return byte_size(call.tool) + byte_size(call.raw or str(call.arguments)) + 2 * FRAME_BYTES
    if isinstance(part, ThoughtPart):
        return byte_size(part.text) + len(part.signature) if part.signature else 0
    return IMAGE_BYTES


def _result_size(result: ToolResult) -> int:
    return byte_size(result.for_model) + IMAGE_BYTES * len(result.images) + 2 * FRAME_BYTES


def byte_size(text: str) -> int:
    """Of a text as it is sent."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
