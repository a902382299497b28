"""The API's own calls; a model that writes its calls into the text all the same is understood."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ostler.models.call_ids import CallIds
from ostler.models.words import CallChunk, Chunk, Request, TextChunk
from ostler.vocabulary.tools import ToolSpec

if TYPE_CHECKING:
    from ostler.models.dialects.call_json import Known, TextCall
    from ostler.models.dialects.text_calls import TextCalls


class Native:
    """Requests go out as they are."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def write(self, request: Request) -> Request:
        return request

    def listen(self, request: Request, ids: CallIds) -> "TextEar":
        return TextEar(*known_tools(request.tools, self._aliases), ids)


class TextEar:
    """Hears calls written as tags or JSON."""

    def __init__(self, known: "Known", aliases: "Known", ids: CallIds) -> None:
        self._known = known
        self._aliases = aliases
        self._ids = ids

    @cached_property
    def _calls(self) -> "TextCalls":
        from ostler.models.dialects.text_calls import TextCalls  # read once there is something to hear

        return TextCalls(self._known, self._aliases)

    def hear(self, text: str) -> list[Chunk]:
        return chunks_of(self._calls.feed(text), self._ids)

    def finish(self) -> list[Chunk]:
        return chunks_of(self._calls.finish(), self._ids)


def known_tools(tools: Iterable[ToolSpec], aliases: Mapping[str, str]) -> "tuple[Known, Known]":
    """The tools by their names, and by those aliases that lead to one of them."""
    known = {tool.name: tool for tool in tools}
    return known, {alias: known[name] for alias, name in aliases.items() if name in known}


def chunks_of(found: "list[str | TextCall]", ids: CallIds) -> list[Chunk]:
    """What the recogniser found, as chunks of a reply."""
    return [
        TextChunk(item) if isinstance(item, str) else CallChunk(ids.fresh(), item.tool, item.arguments)
        for item in found
    ]
