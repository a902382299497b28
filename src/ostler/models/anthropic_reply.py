"""Understands the replies of the Anthropic messages API, streamed or whole."""

from typing import Any

import msgspec

from ostler.models.anthropic_request import REDACTED
from ostler.models.failures import ModelFailure, Refusal
from ostler.models.gather import Gather
from ostler.models.hidden import NOTHING, Hidden
from ostler.models.loose_json import NotJson, compact, read_json
from ostler.models.words import Chunk, Request, Usage


class _Delta(msgspec.Struct, gc=False):
    """What an event adds; only the fields of its own kind are set."""

    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Event(msgspec.Struct, gc=False):
    """One event of the stream; the rare kinds keep their content as it came."""

    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: Any = None
    message: Any = None
    usage: Any = None
    error: Any = None


_EVENT = msgspec.json.Decoder(_Event)


class AnthropicReader:
    """Reads one reply; see `stream_reply.Reader`."""

    def __init__(self, where: str, request: Request, hidden: Hidden = NOTHING) -> None:
        self.gather = Gather(where, request)
        self.over = False
        self._hidden = hidden
        self._seals: dict[int, str] = {}
        self._counts: dict[str, int] = {}

    @property
    def complete(self) -> bool:
        """Whether the server said that the reply ends, and something came."""
        return bool(self.gather.reason or (self.over and self.gather.weight))

    def feed(self, events: list[bytes]) -> None:
        """The events of one read of the socket."""
        run: list[str] = []
        for data in filter(bytes.strip, events):
            try:
                event = _EVENT.decode(data)
            except (ValueError, RecursionError):
                event = self._loose(data)
            delta = event.delta
            if delta is not None and delta.text:
                run.append(delta.text)
                continue
            self._end_run(run)
            self._rare(event, data)
            if self.gather.failure:
                return
        self._end_run(run)

    def document(self, body: bytes) -> None:
        """A reply that came whole."""
        try:
            message = read_json(body)
        except NotJson as error:
            self._broken(str(error))
            return
        if not isinstance(message, dict) or not isinstance(message.get("content"), list):
            self.gather.fail(Refusal(self.gather.where, 200, {}, body, self._hidden).failure())
            return
        self._count(message.get("usage"))
        for index, block in enumerate(message["content"]):
            self._start(index, block)
            self._stop(index)
        self.gather.ends(compact(message.get("stop_reason") or "end_turn"))
        self.over = True

    def finish(self) -> list[Chunk]:
        """The last chunks."""
        return self.gather.finish()

    def _end_run(self, run: list[str]) -> None:
        if run:
            self.gather.text("".join(run))
            run.clear()

    def _loose(self, data: bytes) -> _Event:
        """An event that is not quite in its form, as far as it can be understood."""
        try:
            document = read_json(data)
            return msgspec.convert(document, _Event, strict=False)
        except (NotJson, msgspec.ValidationError, RecursionError) as error:
            self._broken(str(error))
            return _Event()

    def _broken(self, why: str) -> None:
        where = self.gather.where
        self.gather.fail(ModelFailure(f"{where} sent an event that cannot be read ({why[:100]})", code="malformed"))

    def _rare(self, event: _Event, data: bytes) -> None:
        if event.type == "content_block_delta" and event.delta is not None:
            self._add(event.index, event.delta)
        elif event.type == "content_block_start":
            self._start(event.index, event.content_block)
        elif event.type == "content_block_stop":
            self._stop(event.index)
        elif event.type == "message_start" and isinstance(event.message, dict):
            self._count(event.message.get("usage"))
        elif event.type == "message_delta":
            self._count(event.usage)
            if event.delta is not None and event.delta.stop_reason:
                self.gather.ends(event.delta.stop_reason)
        elif event.type == "message_stop":
            self.over = True
        elif event.type == "error" or event.error is not None:
            self.gather.fail(Refusal(self.gather.where, 200, {}, data, self._hidden).failure())

    def _start(self, index: int, block: Any) -> None:
        """A block begins; in a whole reply, and for what is short, it is all there already."""
        if not isinstance(block, dict):
            return
        kind = block.get("type")
        if kind == "text" and block.get("text"):
            self.gather.text(compact(block["text"]))
        elif kind == "thinking":
            self.gather.thought(compact(block.get("thinking") or ""))
            self._seals[index] = compact(block.get("signature") or "")
        elif kind == "redacted_thinking":
            self._seals[index] = REDACTED + compact(block.get("data") or "")
        elif kind == "tool_use":
            given = compact(block["input"]) if block.get("input") else ""
            self.gather.call(index, compact(block.get("id") or ""), compact(block.get("name") or ""), given)

    def _add(self, index: int, delta: _Delta) -> None:
        if delta.thinking:
            self.gather.thought(delta.thinking)
        if delta.signature:
            self._seals[index] = self._seals.get(index, "") + delta.signature
        if delta.partial_json:
            self.gather.call(index, "", "", delta.partial_json)

    def _stop(self, index: int) -> None:
        seal = self._seals.pop(index, "")
        if seal:
            self.gather.thought("", seal)

    def _count(self, usage: Any) -> None:
        """Counts come in two events, and cached tokens beside the others: together they are what went in."""
        if not isinstance(usage, dict):
            return
        for name, value in usage.items():
            if isinstance(value, int) and 0 <= value < 2**53:
                self._counts[name] = value
        cached = self._counts.get("cache_read_input_tokens", 0)
        fresh = self._counts.get("input_tokens", 0) + self._counts.get("cache_creation_input_tokens", 0)
        self.gather.usage = Usage(fresh + cached, self._counts.get("output_tokens", 0), cached)
