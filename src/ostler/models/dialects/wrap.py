"""A model that calls tools in a dialect, made of one that does not: itself a `ModelClient`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, Protocol

import msgspec

from ostler.models.call_ids import CallIds, used_ids
from ostler.models.over import Over
from ostler.models.terms import Price
from ostler.models.words import (
    Again,
    CallChunk,
    Chunk,
    Finished,
    ModelClient,
    Noted,
    Request,
    Silence,
    TextChunk,
    ThoughtChunk,
    WasThought,
)
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.tools import ToolSpec

DialectName = Literal["native", "xnl", "text"]


class Ear(Protocol):
    """Hears the text of one reply, in pieces of any size, and tells words from calls."""

    def hear(self, text: str) -> list[Chunk]: ...

    def finish(self) -> list[Chunk]:
        """The text is over: what was held back."""


class Dialect(Protocol):
    """A way to tell a model of its tools and to understand its calls."""

    def write(self, request: Request) -> Request:
        """The request as it is sent; the same history always becomes the same words."""

    def listen(self, request: Request, ids: CallIds) -> Ear: ...


def with_dialect(client: ModelClient, dialect: DialectName, *, aliases: Mapping[str, str] | None = None) -> ModelClient:
    """The client, speaking the dialect. `aliases` are further names of tools that tagged calls may use."""
    return _Speaker(client, _dialect(dialect, aliases or {}))


def _dialect(name: DialectName, aliases: Mapping[str, str]) -> Dialect:
    if name == "xnl":
        from ostler.models.dialects.xnl import Xnl

        return Xnl(aliases)
    if name == "text":
        from ostler.models.dialects.text import Text

        return Text(aliases)
    from ostler.models.dialects.native import Native

    return Native(aliases)


class _Speaker(Over):
    """A `ModelClient` with a dialect between it and another; `called_by` says where its last call was found."""

    def __init__(self, client: ModelClient, dialect: Dialect) -> None:
        super().__init__(client)
        self._dialect = dialect
        self.called_by: Literal["", "api", "text"] = ""
        self._thinks_unmarked = False

    @property
    def price(self) -> Price | None:
        """What tokens cost, where somebody knows it."""
        return getattr(self._client, "price", None)

    def guide_size(self, tools: Sequence[ToolSpec]) -> int | None:
        """The bytes in which the dialect tells of tools; None where the API has a place for them."""
        written = self._dialect.write(Request("", (), tuple(tools)))
        return None if written.tools or not tools else len(written.system.encode("utf-8", "replace"))

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """One reply; where it breaks off, what was held back comes first."""
        reply = _Reply(self._dialect, request, in_answer=not self._thinks_unmarked)
        chunks = self._client.stream(self._dialect.write(request))
        try:
            async for chunk in chunks:
                self._thinks_unmarked = self._thinks_unmarked or isinstance(chunk, WasThought)
                for heard in _joined(reply.hear(chunk)):
                    if isinstance(heard, CallChunk):
                        self.called_by = "api" if isinstance(chunk, CallChunk) else "text"
                    yield heard
        except BackendError:
            for heard in reply.rest():
                yield heard
            raise
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()


def _waiting(chunk: Chunk) -> Chunk:
    return msgspec.structs.replace(chunk, begin=False) if isinstance(chunk, CallChunk) else chunk


def _joined(chunks: list[Chunk]) -> list[Chunk]:
    """Words that follow each other as one chunk: what one read of the socket brought is told at once."""
    if len(chunks) < 2:
        return chunks
    joined: list[Chunk] = []
    for run in (list(same) for _, same in groupby(chunks, type)):
        texts = [chunk.text for chunk in run if isinstance(chunk, TextChunk)]
        joined += [TextChunk("".join(texts))] if texts else run
    return joined


class _Reply:
    """One reply on its way through a dialect.

    `in_answer`: where a server is known to open the reasoning unseen, no call begins before that is over.
    """

    def __init__(self, dialect: Dialect, request: Request, *, in_answer: bool) -> None:
        self._in_answer = in_answer
        self._dialect = dialect
        self._request = request
        self._ids = CallIds(used_ids(request))
        self._called = False
        self._ear = self._new_ear()

    def hear(self, chunk: Chunk) -> list[Chunk]:
        """What a chunk of the other client comes to."""
        if isinstance(chunk, TextChunk):
            return self._noted(self._ear.hear(chunk.text))
        if isinstance(chunk, ThoughtChunk | Noted | Silence):
            self._in_answer = self._in_answer or isinstance(chunk, ThoughtChunk)
            return [chunk]
        if isinstance(chunk, Again):
            self.rest()
            self._called = False
            return [chunk]
        if isinstance(chunk, WasThought):
            words = [heard for heard in self.rest() if isinstance(heard, TextChunk)]
            self._called, self._in_answer = False, True
            return [*words, chunk]
        return [*self.rest(), self._last(chunk)]

    def rest(self) -> list[Chunk]:
        """What was held back, where the text ends."""
        heard = self._noted(self._ear.finish())
        self._ear = self._new_ear()
        return heard

    def _last(self, chunk: Chunk) -> Chunk:
        """The chunks that come when the text is over."""
        if isinstance(chunk, CallChunk):
            return CallChunk(self._ids.fresh(chunk.id), chunk.tool, chunk.arguments)
        if isinstance(chunk, Finished) and self._called and chunk.reason in ("stop", "other"):
            return Finished("calls", chunk.told)
        return chunk

    def _noted(self, chunks: list[Chunk]) -> list[Chunk]:
        self._called = self._called or any(isinstance(chunk, CallChunk) for chunk in chunks)
        return chunks if self._in_answer else list(map(_waiting, chunks))

    def _new_ear(self) -> Ear:
        return self._dialect.listen(self._request, self._ids)
