"""Collects the chunks of one reply: joins text and reasoning, holds tool calls until complete."""

from typing import TYPE_CHECKING, Literal

from ostler.core.errors import BackendError
from ostler.models.call_ids import used_call_ids
from ostler.models.call_merge import CallMerger
from ostler.models.finish_reasons import parse_finish_reason
from ostler.models.model_errors import ModelError
from ostler.models.model_types import (
    ModelRequest,
    NoData,
    ReplyChunk,
    TextChunk,
    TextReclassified,
    ThoughtChunk,
    Usage,
)
from ostler.models.think_tags import ThinkSplitter

if TYPE_CHECKING:
    from ostler.models.openai_frames import PromptProgress

# In characters; no model writes this much, and each one takes memory in several places.
_MAX_REPLY_SIZE = 16 * 1024 * 1024
# Counted for each call, because its objects take far more memory than a short text.
_CALL_COST = 4096


class ChunkCollector:
    """The content of a reply read so far. `progress` grows with content, never with keep-alive data."""

    def __init__(self, server: str, request: ModelRequest) -> None:
        self.server = server
        self.progress = 0
        self.usage = Usage()
        self.finish_reason = ""
        self.refused = False
        self.reasoning: Literal["", "field", "tags"] = ""  # how the server marks reasoning
        self.error: BackendError | None = None
        self.stray_text = ""  # plain text outside the reply, shown if the reply breaks off
        self.call_merger = CallMerger((tool.name for tool in request.tools), used_call_ids(request))
        self.is_full = False  # `request.max_bytes` is reached
        self._bytes_left = request.max_bytes
        self._call_count = 0
        self._chunks: list[ReplyChunk] = []
        self._think_splitter = ThinkSplitter()
        self._pending_surrogate = ""

    def add_text(self, text: str) -> None:
        """Add text of the answer; `<think>` blocks in it become thoughts."""
        text = self._join_surrogates(text)
        self.add_progress(len(text))
        self._count_bytes(text)
        runs = self._think_splitter.feed(text)
        if self._think_splitter.lone_close:
            self._think_splitter.lone_close = False
            self.reasoning = "tags"
            self._chunks.append(TextReclassified())
        self._append_runs(runs)

    def add_thought(self, text: str, signature: str = "") -> None:
        """Add reasoning. A signature ends the block."""
        self.add_progress(len(text) + len(signature))
        self._count_bytes(text)
        self._think_splitter.ignore_tags()
        self.reasoning = "field"
        self._append(ThoughtChunk(_replace_lone_surrogates(text), signature))

    def add_call(self, index: int | None, call_id: str, name: str, arguments: str) -> None:
        """Add a fragment of a call."""
        self.add_progress(len(call_id) + len(name) + len(arguments) + 1)
        self._count_bytes(arguments)
        if self.error is None:
            self.call_merger.add(index, call_id, name, arguments)
        self.add_progress((self.call_merger.count - self._call_count) * _CALL_COST)
        self._call_count = self.call_merger.count

    def report_reading(self, progress: "PromptProgress") -> None:
        """Add a notice on how much of the prompt the server has read; it is not part of the reply."""
        seconds = progress.time_ms / 1000
        text = f"reading the prompt: {progress.processed} of {progress.total} tokens, {seconds:.0f} s"
        self._chunks.append(NoData(round(seconds, 1), text))

    def set_finish_reason(self, reason: str) -> None:
        """Store the finish reason as the server sent it."""
        self.add_progress(1)
        self.finish_reason = reason

    def fail(self, error: BackendError) -> None:
        """Store the first error. Chunks collected before it remain valid."""
        self.error = self.error or error

    def take_chunks(self) -> list[ReplyChunk]:
        """Return and remove the chunks collected so far."""
        chunks, self._chunks = self._chunks, []
        return chunks

    def flush(self) -> list[ReplyChunk]:
        """Return all remaining text chunks, at the end of the stream or where it broke off."""
        self._append_runs(self._think_splitter.flush())
        return self.take_chunks()

    def finish(self) -> list[ReplyChunk]:
        """Return the last chunks of a complete reply: text, calls, usage and finish reason."""
        chunks = self.flush()
        calls = self.call_merger.calls()
        chunks.extend(calls)
        if self.usage != Usage():
            chunks.append(self.usage)
        chunks.append(parse_finish_reason(self.finish_reason, has_calls=bool(calls), refused=self.refused))
        return chunks

    def add_progress(self, more: int) -> None:
        """Count content in characters; a reply that is too long fails."""
        self.progress += more
        if self.progress > _MAX_REPLY_SIZE:
            self.fail(ModelError(f"{self.server} sent a reply that is too long", code="malformed"))

    def _count_bytes(self, text: str) -> None:
        """Subtract from the byte limit; beyond it the reply ends with reason `length`."""
        if self._bytes_left is None:
            return
        self._bytes_left -= len(text.encode("utf-8", "surrogatepass"))
        if self._bytes_left < 0 and not self.finish_reason:
            self.finish_reason, self.is_full = "length", True

    def _append_runs(self, runs: list[tuple[bool, str]]) -> None:
        for is_thought, text in runs:
            if text:
                self._append(ThoughtChunk(text) if is_thought else TextChunk(text))
            self.reasoning = self.reasoning or ("tags" if is_thought else "")

    def _append(self, chunk: TextChunk | ThoughtChunk) -> None:
        last = self._chunks[-1] if self._chunks else None
        if isinstance(chunk, TextChunk) and isinstance(last, TextChunk):
            self._chunks[-1] = TextChunk(last.text + chunk.text)
        elif isinstance(chunk, ThoughtChunk) and isinstance(last, ThoughtChunk) and not last.signature:
            self._chunks[-1] = ThoughtChunk(last.text + chunk.text, chunk.signature)
        elif chunk.text or isinstance(chunk, ThoughtChunk):
            self._chunks.append(chunk)

    def _join_surrogates(self, text: str) -> str:
        """Join characters whose UTF-16 surrogates arrived in two fragments."""
        if text.isascii() and not self._pending_surrogate:
            return text
        text, self._pending_surrogate = self._pending_surrogate + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._pending_surrogate = text[:-1], text[-1]
        return _replace_lone_surrogates(text)


def _replace_lone_surrogates(text: str) -> str:
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
