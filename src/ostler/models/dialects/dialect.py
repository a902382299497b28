"""A model that calls tools in a dialect, made of one that does not: itself a `ModelClient`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, Protocol

import msgspec

from ostler.core.errors import BackendError
from ostler.core.tools import ToolSpec
from ostler.models.call_ids import CallIds, used_call_ids
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_settings import TokenPrice
from ostler.models.model_types import (
    CallChunk,
    ModelClient,
    ModelRequest,
    NoData,
    ReplyChunk,
    ReplyFinished,
    RequestNote,
    RetryScheduled,
    TextChunk,
    TextWasThought,
    ThoughtChunk,
)

DialectName = Literal["native", "xnl", "text"]


class CallParser(Protocol):
    """Hears the text of one reply, in pieces of any size, and tells words from calls."""

    def feed(self, text: str) -> list[ReplyChunk]: ...

    def finish(self) -> list[ReplyChunk]:
        """The text is over: what was held back."""


class Dialect(Protocol):
    """A way to tell a model of its tools and to understand its calls."""

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        """The request as it is sent; the same history always becomes the same words."""

    def new_parser(self, request: ModelRequest, ids: CallIds) -> CallParser: ...


def apply_dialect(
    client: ModelClient, dialect: DialectName, *, aliases: Mapping[str, str] | None = None
) -> ModelClient:
    """The client, speaking the dialect. `aliases` are further names of tools that tagged calls may use."""
    return _DialectModel(client, _make_dialect(dialect, aliases or {}))


def _make_dialect(name: DialectName, aliases: Mapping[str, str]) -> Dialect:
    if name == "xnl":
        from ostler.models.dialects.xnl import XnlDialect

        return XnlDialect(aliases)
    if name == "text":
        from ostler.models.dialects.text import TextDialect

        return TextDialect(aliases)
    from ostler.models.dialects.native import NativeDialect

    return NativeDialect(aliases)


class _DialectModel(ModelClientWrapper):
    """A `ModelClient` with a dialect between it and another; `called_by` says where its last call was found."""

    def __init__(self, client: ModelClient, dialect: Dialect) -> None:
        super().__init__(client)
        self._dialect = dialect
        self.called_by: Literal["", "api", "text"] = ""
        self._has_untagged_reasoning = False

    @property
    def price(self) -> TokenPrice | None:
        """What tokens cost, where somebody knows it."""
        return getattr(self._client, "price", None)

    def guide_size(self, tools: Sequence[ToolSpec]) -> int | None:
        """The bytes in which the dialect tells of tools; None where the API has a place for them."""
        written = self._dialect.encode_request(ModelRequest("", (), tuple(tools)))
        return None if written.tools or not tools else len(written.system.encode("utf-8", "replace"))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """One reply; where it breaks off, what was held back comes first."""
        reply = _DialectReply(self._dialect, request, in_answer=not self._has_untagged_reasoning)
        chunks = self._client.stream(self._dialect.encode_request(request))
        try:
            async for chunk in chunks:
                self._has_untagged_reasoning = self._has_untagged_reasoning or isinstance(chunk, TextWasThought)
                for heard in _join_text(reply.feed(chunk)):
                    if isinstance(heard, CallChunk):
                        self.called_by = "api" if isinstance(chunk, CallChunk) else "text"
                    yield heard
        except BackendError:
            for heard in reply.flush():
                yield heard
            raise
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()


def _without_start(chunk: ReplyChunk) -> ReplyChunk:
    return msgspec.structs.replace(chunk, may_start=False) if isinstance(chunk, CallChunk) else chunk


def _join_text(chunks: list[ReplyChunk]) -> list[ReplyChunk]:
    """Words that follow each other as one chunk: what one read of the socket brought is told at once."""
    if len(chunks) < 2:
        return chunks
    joined: list[ReplyChunk] = []
    for run in (list(same) for _, same in groupby(chunks, type)):
        texts = [chunk.text for chunk in run if isinstance(chunk, TextChunk)]
        joined += [TextChunk("".join(texts))] if texts else run
    return joined


class _DialectReply:
    """One reply on its way through a dialect.

    `in_answer`: where a server is known to open the reasoning unseen, no call begins before that is over.
    """

    def __init__(self, dialect: Dialect, request: ModelRequest, *, in_answer: bool) -> None:
        self._in_answer = in_answer
        self._dialect = dialect
        self._request = request
        self._ids = CallIds(used_call_ids(request))
        self._has_calls = False
        self._parser = self._new_parser()

    def feed(self, chunk: ReplyChunk) -> list[ReplyChunk]:
        """What a chunk of the other client comes to."""
        if isinstance(chunk, TextChunk):
            return self._track_calls(self._parser.feed(chunk.text))
        if isinstance(chunk, ThoughtChunk | RequestNote | NoData):
            self._in_answer = self._in_answer or isinstance(chunk, ThoughtChunk)
            return [chunk]
        if isinstance(chunk, RetryScheduled):
            self.flush()
            self._has_calls = False
            return [chunk]
        if isinstance(chunk, TextWasThought):
            words = [heard for heard in self.flush() if isinstance(heard, TextChunk)]
            self._has_calls, self._in_answer = False, True
            return [*words, chunk]
        return [*self.flush(), self._convert_last(chunk)]

    def flush(self) -> list[ReplyChunk]:
        """What was held back, where the text ends."""
        heard = self._track_calls(self._parser.finish())
        self._parser = self._new_parser()
        return heard

    def _convert_last(self, chunk: ReplyChunk) -> ReplyChunk:
        """The chunks that come when the text is over."""
        if isinstance(chunk, CallChunk):
            return CallChunk(self._ids.allocate(chunk.id), chunk.tool, chunk.arguments)
        if isinstance(chunk, ReplyFinished) and self._has_calls and chunk.reason in ("stop", "other"):
            return ReplyFinished("calls", chunk.server_reason)
        return chunk

    def _track_calls(self, chunks: list[ReplyChunk]) -> list[ReplyChunk]:
        self._has_calls = self._has_calls or any(isinstance(chunk, CallChunk) for chunk in chunks)
        return chunks if self._in_answer else list(map(_without_start, chunks))

    def _new_parser(self) -> CallParser:
        return self._dialect.new_parser(self._request, self._ids)
