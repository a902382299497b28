"""The native dialect: uses the API's tool calls, and still recognizes calls in the text."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ostler.core.tools import ToolSpec
from ostler.models.call_ids import CallIds
from ostler.models.model_types import CallChunk, ModelRequest, ReplyChunk, TextChunk

if TYPE_CHECKING:
    from ostler.models.dialects.call_json import KnownTools, TextCall
    from ostler.models.dialects.text_calls import TextCallFinder


class NativeDialect:
    """Sends requests unchanged."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        return request

    def new_parser(self, request: ModelRequest, ids: CallIds) -> "TextCallParser":
        return TextCallParser(*known_tools(request.tools, self._aliases), ids)


class TextCallParser:
    """Finds calls written as tags, JSON or Python."""

    def __init__(self, tools: "KnownTools", aliases: "KnownTools", ids: CallIds) -> None:
        self._tools = tools
        self._aliases = aliases
        self._ids = ids

    @cached_property
    def _finder(self) -> "TextCallFinder":
        from ostler.models.dialects.text_calls import TextCallFinder  # imported when text arrives

        return TextCallFinder(self._tools, self._aliases)

    def feed(self, text: str) -> list[ReplyChunk]:
        return to_chunks(self._finder.feed(text), self._ids)

    def finish(self) -> list[ReplyChunk]:
        return to_chunks(self._finder.finish(), self._ids)


def known_tools(tools: Iterable[ToolSpec], aliases: Mapping[str, str]) -> "tuple[KnownTools, KnownTools]":
    """Return the tools by name, and by the aliases of known tools."""
    known = {tool.name: tool for tool in tools}
    return known, {alias: known[name] for alias, name in aliases.items() if name in known}


def to_chunks(found: "list[str | TextCall]", ids: CallIds) -> list[ReplyChunk]:
    """Convert texts and calls to chunks of a reply."""
    return [
        TextChunk(item) if isinstance(item, str) else CallChunk(ids.allocate(), item.tool, item.arguments)
        for item in found
    ]
