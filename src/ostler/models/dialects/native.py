"""The API's own calls; a model that writes its calls into the text all the same is understood."""

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
    """Requests go out as they are."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        return request

    def new_parser(self, request: ModelRequest, ids: CallIds) -> "TextCallParser":
        return TextCallParser(*known_tools(request.tools, self._aliases), ids)


class TextCallParser:
    """Hears calls written as tags or JSON."""

    def __init__(self, tools: "KnownTools", aliases: "KnownTools", ids: CallIds) -> None:
        self._tools = tools
        self._aliases = aliases
        self._ids = ids

    @cached_property
    def _finder(self) -> "TextCallFinder":
        from ostler.models.dialects.text_calls import TextCallFinder  # read once there is something to hear

        return TextCallFinder(self._tools, self._aliases)

    def feed(self, text: str) -> list[ReplyChunk]:
        return to_chunks(self._finder.feed(text), self._ids)

    def finish(self) -> list[ReplyChunk]:
        return to_chunks(self._finder.finish(), self._ids)


def known_tools(tools: Iterable[ToolSpec], aliases: Mapping[str, str]) -> "tuple[KnownTools, KnownTools]":
    """The tools by their names, and by those aliases that lead to one of them."""
    known = {tool.name: tool for tool in tools}
    return known, {alias: known[name] for alias, name in aliases.items() if name in known}


def to_chunks(found: "list[str | TextCall]", ids: CallIds) -> list[ReplyChunk]:
    """What the recogniser found, as chunks of a reply."""
    return [
        TextChunk(item) if isinstance(item, str) else CallChunk(ids.allocate(), item.tool, item.arguments)
        for item in found
    ]
