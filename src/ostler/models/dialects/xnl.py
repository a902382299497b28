"""The XNL dialect: calls in unquote blocks, parsed while streaming."""

from collections.abc import Mapping
from functools import partial

import msgspec

from ostler.core.tools import UNREADABLE_CALL
from ostler.models.call_ids import CallIds
from ostler.models.dialects.call_json import KnownTools
from ostler.models.dialects.history import to_text_history
from ostler.models.dialects.markdown_context import MarkdownContext
from ostler.models.dialects.native import known_tools, to_chunks
from ostler.models.dialects.text_calls import TextCallFinder
from ostler.models.dialects.xnl_calls import qualified_name, tool_route, write_calls, write_results
from ostler.models.loose_json import write_json
from ostler.models.model_types import CallChunk, ModelRequest, ReplyChunk, TextChunk
from ostler.xnl.call_blocks import FoundCall, read_block
from ostler.xnl.scanner import UNQUOTE_END, UNQUOTE_START, ScannedPart, UnclosedBlock, VisibleText, XnlScanner


class XnlDialect:
    """Describes tools in the system prompt; calls and results are XNL blocks."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        from ostler.models.dialects.xnl_guide import tool_guide

        system = f"{request.system}\n\n{tool_guide(request.tools)}" if request.tools else request.system
        routes = {tool.name: tool_route(tool) for tool in request.tools if tool.namespace}
        history = to_text_history(request.history, partial(write_calls, routes=routes), write_results)
        return msgspec.structs.replace(request, system=system, history=history, tools=())

    def new_parser(self, request: ModelRequest, ids: CallIds, *, makes_api_calls: bool = False) -> "XnlCallParser":
        known, known_aliases = known_tools(request.tools, self._aliases)
        by_name = {**known_aliases, **known}
        routes = {tool_route(tool): by_name[tool.name] for tool in request.tools}
        return XnlCallParser({qualified_name(name): tool for name, tool in by_name.items()} | routes | by_name, ids)


class XnlCallParser:
    """Parses unquote blocks, and calls in the tags that models commonly use. Quote blocks are shown as text."""

    def __init__(self, tools: KnownTools, ids: CallIds) -> None:
        self._tools = tools
        self._ids = ids
        self._scanner = XnlScanner(MarkdownContext())
        self._call_finder = TextCallFinder(tools, tags_only=True)

    def feed(self, text: str) -> list[ReplyChunk]:
        return [chunk for part in self._scanner.feed(text) for chunk in self._convert_part(part)]

    def finish(self, *, more_follows: bool = False) -> list[ReplyChunk]:
        last = [chunk for part in self._scanner.finish() for chunk in self._convert_part(part)]
        return last + self._flush_text()

    def _convert_part(self, part: ScannedPart) -> list[ReplyChunk]:
        if isinstance(part, VisibleText):
            return to_chunks(self._call_finder.feed(part.text), self._ids)
        unclosed = isinstance(part, UnclosedBlock)
        if part.kind == "quote":
            return [*self._flush_text(), TextChunk(f"!quote_start{part.text}{'' if unclosed else '!quote_end'}")]
        before = self._flush_text()
        self._call_finder.mark_call()
        source = f"{UNQUOTE_START}{part.text}{'' if unclosed else UNQUOTE_END}"
        return [*before, *(self._unreadable_call(source) if unclosed else self._read_block_calls(part.text, source))]

    def _read_block_calls(self, text: str, source: str) -> list[CallChunk]:
        """Return the calls of a complete block. The last one has `may_start`, so all of them may start."""
        calls: list[CallChunk] = []
        for entry in read_block(text, with_source=True):
            if isinstance(entry, FoundCall):
                arguments = write_json(entry.arguments).decode()
                calls.append(CallChunk(self._ids.allocate(entry.id), entry.function, arguments, source=entry.source))
            else:
                calls += self._unreadable_call(source, entry.id or "")
        *before, last = calls or self._unreadable_call(source)
        return [*before, msgspec.structs.replace(last, may_start=True)]

    def _unreadable_call(self, source: str, call_id: str = "") -> list[CallChunk]:
        """Return a call that cannot run: it names no tool, so it is never repaired. Its source explains the error."""
        return [CallChunk(self._ids.allocate(call_id), UNREADABLE_CALL, source)]

    def _flush_text(self) -> list[ReplyChunk]:
        """Return the text held back before a block, and start a new finder for the text after it."""
        chunks = to_chunks(self._call_finder.finish(), self._ids)
        self._call_finder = TextCallFinder(self._tools, tags_only=True)
        return chunks
