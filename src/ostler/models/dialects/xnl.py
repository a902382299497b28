"""The XNL dialect: calls in unquote blocks of the text, understood while they stream."""

from collections.abc import Mapping

import msgspec

from ostler.models.call_ids import CallIds
from ostler.models.dialects.call_json import Known
from ostler.models.dialects.history import in_words
from ostler.models.dialects.native import chunks_of, known_tools
from ostler.models.dialects.text_calls import TextCalls
from ostler.models.dialects.xnl_calls import NO_TOOL, route, write_calls, write_results
from ostler.models.loose_json import write_json
from ostler.models.words import CallChunk, Chunk, Request, TextChunk
from ostler.xnl.blocks import FoundCall, read_block
from ostler.xnl.scanner import END, START, Piece, Scanner, Unclosed, Visible


class Xnl:
    """No tools in the request: guides in the system prompt, calls and results as blocks."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def write(self, request: Request) -> Request:
        from ostler.models.dialects.xnl_guide import guide

        system = f"{request.system}\n\n{guide(request.tools)}" if request.tools else request.system
        history = in_words(request.history, write_calls, write_results)
        return msgspec.structs.replace(request, system=system, history=history, tools=())

    def listen(self, request: Request, ids: CallIds) -> "XnlEar":
        known, elsewhere = known_tools(request.tools, self._aliases)
        named = {**elsewhere, **known}
        return XnlEar({route(name): tool for name, tool in named.items()} | named, ids)


class XnlEar:
    """Hears unquote blocks, and calls in the tags that models know by heart; quote blocks are only shown."""

    def __init__(self, known: Known, ids: CallIds) -> None:
        self._known = known
        self._ids = ids
        self._scanner = Scanner()
        self._calls = TextCalls(known, tags_only=True)

    def hear(self, text: str) -> list[Chunk]:
        return [chunk for piece in self._scanner.feed(text) for chunk in self._piece(piece)]

    def finish(self) -> list[Chunk]:
        last = [chunk for piece in self._scanner.finish() for chunk in self._piece(piece)]
        return last + self._settle()

    def _piece(self, piece: Piece) -> list[Chunk]:
        if isinstance(piece, Visible):
            return chunks_of(self._calls.feed(piece.text), self._ids)
        unclosed = isinstance(piece, Unclosed)
        if piece.kind == "quote":
            return [*self._settle(), TextChunk(f"!quote_start{piece.text}{'' if unclosed else '!quote_end'}")]
        before = self._settle()
        self._calls.called()
        source = f"{START}{piece.text}{'' if unclosed else END}"
        return [*before, *(self._unread(source) if unclosed else self._block(piece.text, source))]

    def _block(self, text: str, source: str) -> list[CallChunk]:
        """The calls of a block that is whole: with the last of them all may begin."""
        calls: list[CallChunk] = []
        for entry in read_block(text):
            if isinstance(entry, FoundCall):
                arguments = write_json(entry.arguments).decode()
                calls.append(CallChunk(self._ids.fresh(entry.id), entry.function, arguments))
            else:
                calls += self._unread(source, entry.id or "")
        *before, last = calls or self._unread(source)
        return [*before, msgspec.structs.replace(last, begin=True)]

    def _unread(self, source: str, call_id: str = "") -> list[CallChunk]:
        """A call that cannot run: it names no tool, lest somebody mend it; its source has the model told why."""
        return [CallChunk(self._ids.fresh(call_id), NO_TOOL, source)]

    def _settle(self) -> list[Chunk]:
        """What was held back of the text before a block; the text after it begins afresh."""
        held = chunks_of(self._calls.finish(), self._ids)
        self._calls = TextCalls(self._known, tags_only=True)
        return held
