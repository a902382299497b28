"""Estimates tokens from bytes, calibrated by the usage that servers report."""

from ostler.core.message import CallPart, MessagePart, ThoughtPart
from ostler.core.prompt import EmbeddedResource, ImageContent, PromptContent, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_types import AssistantMessage, RequestMessage, ToolResultsMessage, UserMessage

BYTES_PER_TOKEN = 3.6
# Bytes per token of any tokenizer on any text; reports outside this range are ignored.
PLAUSIBLE_RATIOS = (0.8, 16.0)
# Weight of a new report against the previous ratio.
NEW_REPORT_WEIGHT = 0.5
# Bytes that must be added since the last report to derive a ratio from them.
MIN_NEW_BYTES = 500
FRAME_BYTES = 16
IMAGE_BYTES = 4800


class TokenEstimator:
    """Estimates tokens for one model: the last report, plus the bytes since then at the ratio learned from reports."""

    def __init__(self) -> None:
        self.ratio = BYTES_PER_TOKEN
        self._size = 0
        self._tokens = 0

    def request_tokens(self, size: int) -> int:
        """Estimate the tokens of a request of `size` bytes."""
        return max(round(self._tokens + (size - self._size) / self.ratio), int(size / PLAUSIBLE_RATIOS[1]))

    def tokens_for(self, size: int) -> int:
        """Estimate the tokens in `size` bytes."""
        return round(size / self.ratio)

    def bytes_for(self, tokens: float) -> int:
        """Estimate the bytes in `tokens` tokens."""
        return int(tokens * self.ratio)

    def calibrate(self, size: int, tokens: int) -> None:
        """Learn that a request of `size` bytes had `tokens` tokens."""
        if not tokens or not _is_plausible(size / tokens):
            return
        if not self._tokens:
            self.ratio = size / tokens
        elif size - self._size > MIN_NEW_BYTES and tokens > self._tokens:
            observed = (size - self._size) / (tokens - self._tokens)
            self.ratio += NEW_REPORT_WEIGHT * (observed - self.ratio) if _is_plausible(observed) else 0.0
        self._size, self._tokens = size, tokens


def _is_plausible(ratio: float) -> bool:
    return PLAUSIBLE_RATIOS[0] <= ratio <= PLAUSIBLE_RATIOS[1]


def message_size(message: RequestMessage) -> int:
    """Return the bytes that a message adds to a request, roughly."""
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
        return byte_size(call.tool) + _arguments_size(call) + 2 * FRAME_BYTES
    if isinstance(part, ThoughtPart):
        return byte_size(part.text) + len(part.signature) if part.signature else 0
    return IMAGE_BYTES


def _arguments_size(call: ToolCall) -> int:
    """Return the size of the arguments as they are sent: none, if the payload could not be read."""
    if not call.arguments:
        return 2
    return byte_size(call.raw or str(call.arguments))


def _result_size(result: ToolResult) -> int:
    return byte_size(result.for_model) + IMAGE_BYTES * len(result.images) + 2 * FRAME_BYTES


def byte_size(text: str) -> int:
    """Return the size of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
