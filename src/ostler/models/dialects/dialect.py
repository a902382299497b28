"""The dialect protocol, and the client wrapper that applies one."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Literal, Protocol

import msgspec

from ostler.core.errors import BackendError
from ostler.core.tools import ToolSpec
from ostler.models.call_ids import CallIds, used_call_ids
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_types import (
    CallChunk,
    CallForm,
    ModelClient,
    ModelRequest,
    NoData,
    ReplyChunk,
    ReplyFinished,
    RequestNote,
    RetryScheduled,
    TextChunk,
    TextReclassified,
    ThoughtChunk,
)
from ostler.settings.schema_models import DialectName

AnyDialect = DialectName | Literal["files"]  # that of the embedded model cannot be configured


class CallParser(Protocol):
    """Separates text from calls in one streamed reply."""

    def feed(self, text: str) -> list[ReplyChunk]: ...

    def finish(self, *, more_follows: bool = False) -> list[ReplyChunk]:
        """Return the chunks held back, at the end of the text. With `more_follows`, the reply does not end here."""


class Dialect(Protocol):
    """A way to describe tools to a model and to parse its calls."""

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        """Return the request to send. The same history always gives the same text."""

    def new_parser(self, request: ModelRequest, ids: CallIds, *, makes_api_calls: bool) -> CallParser:
        """Return a parser for one reply. With `makes_api_calls`, JSON in the text of this model is not a call."""


def apply_dialect(client: ModelClient, dialect: AnyDialect, *, aliases: Mapping[str, str] | None = None) -> ModelClient:
    """Return a client that uses the dialect. `aliases` are other tool names that tagged calls may use."""
    return _DialectModel(client, _make_dialect(dialect, aliases or {}), edits_in_text=dialect == "files")


def _make_dialect(name: AnyDialect, aliases: Mapping[str, str]) -> Dialect:
    if name == "xnl":
        from ostler.models.dialects.xnl import XnlDialect

        return XnlDialect(aliases)
    if name == "text":
        from ostler.models.dialects.text import TextDialect

        return TextDialect(aliases)
    if name == "files":
        from ostler.models.dialects.files import FilesDialect

        return FilesDialect(aliases)
    from ostler.models.dialects.native import NativeDialect

    return NativeDialect(aliases)


class _DialectModel(ModelClientWrapper):
    """A `ModelClient` that applies a dialect to another. `called_by` is where its last call was found."""

    def __init__(self, client: ModelClient, dialect: Dialect, *, edits_in_text: bool) -> None:
        super().__init__(client)
        self._edits_in_text = edits_in_text
        self._dialect = dialect
        self._called_by: CallForm = ""
        self._has_untagged_reasoning = False
        self._makes_api_calls = False

    @property
    def called_by(self) -> CallForm:
        return self._called_by

    @property
    def edits_in_text(self) -> bool:
        return self._edits_in_text

    def guide_size(self, tools: Sequence[ToolSpec]) -> int | None:
        """Return how many bytes the tool instructions take, or None if tools are sent in the API's own form."""
        encoded = self._dialect.encode_request(ModelRequest("", (), tuple(tools)))
        return None if encoded.tools or not tools else len(encoded.system.encode("utf-8", "replace"))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """Stream one reply. If it breaks off, chunks held back come before the error."""
        reply = _DialectReply(
            self._dialect,
            request,
            in_answer=not self._has_untagged_reasoning,
            makes_api_calls=self._makes_api_calls,
        )
        async with aclosing(self._client.stream(self._dialect.encode_request(request))) as chunks:
            try:
                async for chunk in chunks:
                    self._has_untagged_reasoning = self._has_untagged_reasoning or isinstance(chunk, TextReclassified)
                    self._makes_api_calls = self._makes_api_calls or isinstance(chunk, CallChunk)
                    for converted in _join_text(reply.feed(chunk)):
                        if isinstance(converted, CallChunk):
                            self._called_by = "api" if isinstance(chunk, CallChunk) else "text"
                        yield converted
            except BackendError:
                for converted in reply.flush(more_follows=True):
                    yield converted
                raise


def _without_start(chunk: ReplyChunk) -> ReplyChunk:
    return msgspec.structs.replace(chunk, may_start=False) if isinstance(chunk, CallChunk) else chunk


def _join_text(chunks: list[ReplyChunk]) -> list[ReplyChunk]:
    """Merge consecutive text chunks."""
    if len(chunks) < 2:
        return chunks
    joined: list[ReplyChunk] = []
    for run in (list(same) for _, same in groupby(chunks, type)):
        texts = [chunk.text for chunk in run if isinstance(chunk, TextChunk)]
        joined += [TextChunk("".join(texts))] if texts else run
    return joined


class _DialectReply:
    """Converts the chunks of one reply.

    `in_answer` is False for servers that omit the opening tag of reasoning; calls then wait for the end of reasoning.
    """

    def __init__(self, dialect: Dialect, request: ModelRequest, *, in_answer: bool, makes_api_calls: bool) -> None:
        self._makes_api_calls = makes_api_calls
        self._in_answer = in_answer
        self._dialect = dialect
        self._request = request
        self._ids = CallIds(used_call_ids(request))
        self._has_calls = False
        self._parser = self._new_parser()

    def feed(self, chunk: ReplyChunk) -> list[ReplyChunk]:
        """Return the chunks for a chunk of the wrapped client."""
        if isinstance(chunk, TextChunk):
            return self._track_calls(self._parser.feed(chunk.text))
        if isinstance(chunk, ThoughtChunk | RequestNote | NoData):
            self._in_answer = self._in_answer or isinstance(chunk, ThoughtChunk)
            return [chunk]
        if isinstance(chunk, RetryScheduled):
            self.flush()
            self._has_calls = False
            return [chunk]
        if isinstance(chunk, TextReclassified):
            texts = [item for item in self.flush() if isinstance(item, TextChunk)]
            self._has_calls, self._in_answer = False, True
            return [*texts, chunk]
        is_call = isinstance(chunk, CallChunk)
        self._makes_api_calls = self._makes_api_calls or is_call
        return [*self.flush(more_follows=is_call), self._convert_last(chunk)]

    def flush(self, *, more_follows: bool = False) -> list[ReplyChunk]:
        """Return the chunks held back, at the end of the text."""
        chunks = self._track_calls(self._parser.finish(more_follows=more_follows))
        self._parser = self._new_parser()
        return chunks

    def _convert_last(self, chunk: ReplyChunk) -> ReplyChunk:
        """Convert a chunk that follows the text: give calls a new id, and set the reason `calls`."""
        if isinstance(chunk, CallChunk):
            return CallChunk(self._ids.allocate(chunk.id), chunk.tool, chunk.arguments)
        if isinstance(chunk, ReplyFinished) and self._has_calls and chunk.reason in ("stop", "other"):
            return ReplyFinished("calls", chunk.server_reason)
        return chunk

    def _track_calls(self, chunks: list[ReplyChunk]) -> list[ReplyChunk]:
        self._has_calls = self._has_calls or any(isinstance(chunk, CallChunk) for chunk in chunks)
        return chunks if self._in_answer else list(map(_without_start, chunks))

    def _new_parser(self) -> CallParser:
        return self._dialect.new_parser(self._request, self._ids, makes_api_calls=self._makes_api_calls)
