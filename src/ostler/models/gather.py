"""The chunks of one reply, whatever its wire: runs of text and thought joined, calls kept until they are whole."""

from typing import Literal

from ostler.models.call_ids import used_ids
from ostler.models.call_merge import CallMerger
from ostler.models.endings import finished
from ostler.models.failures import ModelFailure
from ostler.models.think import ThinkSplitter
from ostler.models.words import (
    Chunk,
    Request,
    TextChunk,
    ThoughtChunk,
    Usage,
    WasThought,
)
from ostler.vocabulary.errors import BackendError

_LIMIT = 64 * 1024 * 1024


class Gather:
    """What has been read of a reply. `weight` grows with all that tells something, and with nothing else."""

    def __init__(self, where: str, request: Request) -> None:
        self.where = where
        self.weight = 0
        self.usage = Usage()
        self.reason = ""
        self.refused = False
        self.reasoning: Literal["", "field", "tags"] = ""  # how the server tells it apart
        self.failure: BackendError | None = None
        self.aside = ""  # words that were no part of it
        self.calls = CallMerger((tool.name for tool in request.tools), used_ids(request))
        self.full = False  # it has grown as long as it may
        self._room = request.most_bytes
        self._chunks: list[Chunk] = []
        self._think = ThinkSplitter()
        self._half = ""

    def text(self, text: str) -> None:
        """More of the answer."""
        text = self._mend(text)
        self._weigh(len(text))
        self._fill(text)
        runs = self._think.feed(text)
        if self._think.lone_close:
            self._think.lone_close = False
            self.reasoning = "tags"
            self._chunks.append(WasThought())
        self._put(runs)

    def thought(self, text: str, seal: str = "") -> None:
        """More of the reasoning; a seal ends its block."""
        self._weigh(len(text) + len(seal))
        self._fill(text)
        self._think.told_apart()
        self.reasoning = "field"
        self._append(ThoughtChunk(_whole_characters(text), seal))

    def call(self, index: int | None, call_id: str, name: str, arguments: str) -> None:
        """A piece of a call."""
        self._weigh(len(call_id) + len(name) + len(arguments) + 1)
        self._fill(arguments)
        self.calls.add(index, call_id, name, arguments)

    def ends(self, reason: str) -> None:
        """The server said why the reply is over."""
        self._weigh(1)
        self.reason = reason

    def fail(self, failure: BackendError) -> None:
        """Something went wrong; what came before it still counts."""
        self.failure = self.failure or failure

    def take(self) -> list[Chunk]:
        """What there is to pass on now."""
        chunks, self._chunks = self._chunks, []
        return chunks

    def rest(self) -> list[Chunk]:
        """What was held back, at the end or where the stream broke off."""
        self._put(self._think.flush())
        return self.take()

    def finish(self) -> list[Chunk]:
        """The last chunks of a whole reply."""
        chunks = self.rest()
        calls = self.calls.calls()
        chunks.extend(calls)
        if self.usage != Usage():
            chunks.append(self.usage)
        chunks.append(finished(self.reason, called=bool(calls), refused=self.refused))
        return chunks

    def _weigh(self, more: int) -> None:
        self.weight += more
        if self.weight > _LIMIT:
            self.fail(ModelFailure(f"{self.where} sent a reply without end", code="malformed"))

    def _fill(self, text: str) -> None:
        """Where the room for the reply is used up, it ends as if the server had cut it."""
        if self._room is None:
            return
        self._room -= len(text.encode("utf-8", "surrogatepass"))
        if self._room < 0 and not self.reason:
            self.reason, self.full = "length", True

    def _put(self, runs: list[tuple[bool, str]]) -> None:
        for is_thought, text in runs:
            if text:
                self._append(ThoughtChunk(text) if is_thought else TextChunk(text))
            self.reasoning = self.reasoning or ("tags" if is_thought else "")

    def _append(self, chunk: TextChunk | ThoughtChunk) -> None:
        last = self._chunks[-1] if self._chunks else None
        if isinstance(chunk, TextChunk) and isinstance(last, TextChunk):
            self._chunks[-1] = TextChunk(last.text + chunk.text)
        elif isinstance(chunk, ThoughtChunk) and isinstance(last, ThoughtChunk) and not last.seal:
            self._chunks[-1] = ThoughtChunk(last.text + chunk.text, chunk.seal)
        elif chunk.text or isinstance(chunk, ThoughtChunk):
            self._chunks.append(chunk)

    def _mend(self, text: str) -> str:
        """Put characters together whose two UTF-16 halves came in two pieces."""
        if text.isascii() and not self._half:
            return text
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return _whole_characters(text)


def _whole_characters(text: str) -> str:
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
