"""How large a request is: bytes, and tokens as estimated from them and set right by what servers report."""

from ostler.models.words import ModelSaid, Said, ToolsSaid, UserSaid
from ostler.vocabulary.message import Called, Part, Thought
from ostler.vocabulary.prompt import Block, Image, Resource, Text
from ostler.vocabulary.tools import ToolResult

BYTES_PER_TOKEN = 3.6
# No tokenizer is outside these on any text; a server that reports such counts does not mean them.
PLAUSIBLE = (0.8, 16.0)
# A new report counts as much as all before it: what a conversation is about changes slowly.
WEIGHT = 0.5
# So many bytes must have come since the last report for their worth to be told from it.
ENOUGH = 500
FRAME = 16
PICTURE = 4800


class Meter:
    """Tokens by bytes for one model: the last report, and what the bytes since then are worth by how reports grew."""

    def __init__(self) -> None:
        self.ratio = BYTES_PER_TOKEN
        self._size = 0
        self._tokens = 0

    def tokens(self, size: int) -> int:
        """The estimate for a request of so many bytes."""
        return max(round(self._tokens + (size - self._size) / self.ratio), int(size / PLAUSIBLE[1]))

    def worth(self, size: int) -> int:
        """About how many tokens so many bytes are."""
        return round(size / self.ratio)

    def bytes(self, tokens: float) -> int:
        """About how many bytes so many tokens are."""
        return int(tokens * self.ratio)

    def learn(self, size: int, tokens: int) -> None:
        """A request of that size was counted as that many tokens."""
        if not tokens or not _plausible(size / tokens):
            return
        if not self._tokens:
            self.ratio = size / tokens
        elif size - self._size > ENOUGH and tokens > self._tokens:
            seen = (size - self._size) / (tokens - self._tokens)
            self.ratio += WEIGHT * (seen - self.ratio) if _plausible(seen) else 0.0
        self._size, self._tokens = size, tokens


def _plausible(ratio: float) -> bool:
    return PLAUSIBLE[0] <= ratio <= PLAUSIBLE[1]


def size_of(said: Said) -> int:
    """The bytes that a message adds to a request, but for its punctuation."""
    if isinstance(said, ModelSaid):
        return sum(map(_part, said.message.parts)) + FRAME
    if isinstance(said, ToolsSaid):
        return sum(map(_result, said.results))
    if isinstance(said, UserSaid):
        return sum(map(_block, said.blocks)) + FRAME
    return byte_size(said.text) + FRAME


def _block(block: Block) -> int:
    if isinstance(block, Image):
        return PICTURE
    if isinstance(block, Text):
        return byte_size(block.text)
    return (
        byte_size(block.uri) + (byte_size(block.text) if isinstance(block, Resource) else byte_size(block.name)) + FRAME
    )


def _part(part: Part) -> int:
    if isinstance(part, Text):
        return byte_size(part.text)
    if isinstance(part, Called):
        call = part.call
        return byte_size(call.tool) + byte_size(call.raw or str(call.arguments)) + 2 * FRAME
    if isinstance(part, Thought):
        return byte_size(part.text) + len(part.seal) if part.seal else 0
    return PICTURE


def _result(result: ToolResult) -> int:
    return byte_size(result.for_model) + PICTURE * len(result.images) + 2 * FRAME


def byte_size(text: str) -> int:
    """Of a text as it is sent."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
