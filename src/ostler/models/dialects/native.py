"""The native dialect: uses the API's tool calls, and still recognizes calls in the text."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ostler.core.tools import ToolSpec
from ostler.models.call_ids import CallIds
from ostler.models.dialects.quoted_calls import ShownTexts, explain_quoted_calls
from ostler.models.model_types import CallChunk, ModelRequest, ReplyChunk, TextChunk

if TYPE_CHECKING:
    from ostler.models.dialects.call_json import KnownTools, TextCall
    from ostler.models.dialects.text_calls import TextCallFinder


class NativeDialect:
    """Sends requests unchanged."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        history = explain_quoted_calls(request.history)
        return request if history == request.history else msgspec.structs.replace(request, history=history)

    def new_parser(self, request: ModelRequest, ids: CallIds, *, makes_api_calls: bool) -> "TextCallParser":
        tools, aliases = known_tools(request.tools, self._aliases)
        shown = ShownTexts(request.history)
        return TextCallParser(tools, aliases, ids, shown, tags_only=makes_api_calls, check_tagged=True)


class TextCallParser:
    """Finds calls written as tags, JSON or Python."""

    def __init__(
        self,
        tools: "KnownTools",
        aliases: "KnownTools",
        ids: CallIds,
        shown: ShownTexts,
        *,
        tags_only: bool = False,
        check_tagged: bool = False,
    ) -> None:
        self._tools = tools
        self._aliases = aliases
        self._ids = ids
        self._shown = shown
        self._tags_only = tags_only
        self._check_tagged = check_tagged

    @cached_property
    def _finder(self) -> "TextCallFinder":
        from ostler.models.dialects.text_calls import TextCallFinder  # imported when text arrives

        return TextCallFinder(
            self._tools,
            self._aliases,
            tags_only=self._tags_only,
            was_shown=self._shown.contains,
            check_tagged=self._check_tagged,
        )

    def feed(self, text: str) -> list[ReplyChunk]:
        return to_chunks(self._finder.feed(text), self._ids)

    def finish(self, *, more_follows: bool = False) -> list[ReplyChunk]:
        return to_chunks(self._finder.finish(more_follows=more_follows), self._ids)


def known_tools(tools: Iterable[ToolSpec], aliases: Mapping[str, str]) -> "tuple[KnownTools, KnownTools]":
    """Return the tools by name, and by the aliases of known tools."""
    known = {tool.name: tool for tool in tools}
    return known, {alias: known[name] for alias, name in aliases.items() if name in known}


def to_chunks(found: "list[str | TextCall]", ids: CallIds) -> list[ReplyChunk]:
    """Convert texts and calls to chunks of a reply."""
    return [
        TextChunk(item)
        if isinstance(item, str)
        else CallChunk(ids.allocate(), item.tool, item.arguments, source=item.source)
        for item in found
    ]
