"""Understands the replies of the Anthropic messages API, streamed or whole."""

from typing import Any

from ostler.models.anthropic_events import Delta, Event, loose_event, read_event
from ostler.models.anthropic_request import REDACTED
from ostler.models.failures import ModelFailure, Refusal
from ostler.models.gather import Gather
from ostler.models.hidden import NOTHING, Hidden
from ostler.models.loose_json import NotJson, compact, read_json
from ostler.models.odd_events import is_done, words_in
from ostler.models.openai_frames import sane_count
from ostler.models.words import Chunk, Request, Usage


class AnthropicReader:
    """Reads one reply; see `stream_reply.Reader`."""

    def __init__(self, where: str, request: Request, hidden: Hidden = NOTHING) -> None:
        self.gather = Gather(where, request)
        self.over = False
        self._hidden = hidden
        self._seals: dict[int, str] = {}
        self._given: dict[int, str] = {}
        self._foreign: set[int] = set()
        self._counts: dict[str, int] = {}

    @property
    def complete(self) -> bool:
        """Whether the server said that the reply ends, and something came."""
        return bool(self.gather.reason or (self.over and self.gather.weight))

    def feed(self, events: list[bytes]) -> None:
        """The events of one read of the socket."""
        run: list[str] = []
        for data in filter(bytes.strip, events):
            event = read_event(data)
            if event is None:
                if is_done(data):
                    self.over = True
                    break
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
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            self._fail(body)
            return
        self._count(message.get("usage"))
        for index, block in enumerate(content):
            self._start(index, block)
            self._stop(index)
        self.gather.ends(compact(message.get("stop_reason") or "end_turn"))
        self.over = True

    def finish(self) -> list[Chunk]:
        """The last chunks."""
        for index in tuple(self._given):
            self._stop(index)
        return self.gather.finish()

    def _end_run(self, run: list[str]) -> None:
        if run:
            self.gather.text("".join(run))
            run.clear()

    def _loose(self, data: bytes) -> Event:
        """An event that is not quite in its form, as far as it can be understood."""
        if (said := words_in(data)) is not None:
            self.gather.aside = said or self.gather.aside
            return Event()
        try:
            return loose_event(read_json(data))
        except NotJson as error:
            self._broken(str(error))
            return Event()

    def _broken(self, why: str) -> None:
        """What cannot be read fails the reply, unless that has said already why it is over."""
        if self.gather.reason:
            return
        where = self.gather.where
        self.gather.fail(ModelFailure(f"{where} sent an event that cannot be read ({why[:100]})", code="malformed"))

    def _rare(self, event: Event, data: bytes) -> None:
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
        elif event.type == "error" or event.error or event.choices is not None:
            self._fail(data)

    def _fail(self, data: bytes) -> None:
        """An error object, or the reply of a server that speaks another API."""
        where = self.gather.where
        if b'"choices"' not in data:
            self.gather.fail(Refusal(where, 200, {}, data, self._hidden).failure())
            return
        hint = "set the profile's apiKind to openai"
        self.gather.fail(ModelFailure(f"{where} answers in the form of OpenAI's API", code="wrong_url", hint=hint))

    def _start(self, index: int, block: Any) -> None:
        """A block begins; in a whole reply, and for what is short, it is all there already."""
        if not isinstance(block, dict):
            return
        kind = block.get("type")
        self._foreign.discard(index)
        if kind == "text":
            self.gather.text(compact(block.get("text") or ""))
        elif kind == "thinking":
            self.gather.thought(compact(block.get("thinking") or ""))
            self._seals[index] = compact(block.get("signature") or "")
        elif kind == "redacted_thinking":
            self._seals[index] = REDACTED + compact(block.get("data") or "")
        elif kind != "tool_use":
            self._foreign.add(index)  # a tool of the server's own, whose arguments are no call of ours
        else:
            given = compact(block["input"]) if block.get("input") else ""
            self._given[index] = given
            self.gather.call(index, compact(block.get("id") or ""), compact(block.get("name") or ""), "")

    def _add(self, index: int, delta: Delta) -> None:
        if delta.thinking:
            self.gather.thought(delta.thinking)
        if delta.signature:
            self._seals[index] = self._seals.get(index, "") + delta.signature
        if delta.partial_json and index not in self._foreign:
            self._given.pop(index, None)  # told whole at first, and then once more in pieces
            self.gather.call(index, "", "", delta.partial_json)

    def _stop(self, index: int) -> None:
        if given := self._given.pop(index, ""):
            self.gather.call(index, "", "", given)
        seal = self._seals.pop(index, "")
        if seal:
            self.gather.thought("", seal)

    def _count(self, usage: Any) -> None:
        """Counts come in two events, and cached tokens beside the others: together they are what went in."""
        if not isinstance(usage, dict):
            return
        self._counts.update({name: sane_count(value) for name, value in usage.items() if value is not None})
        cached = self._counts.get("cache_read_input_tokens", 0)
        fresh = self._counts.get("input_tokens", 0) + self._counts.get("cache_creation_input_tokens", 0)
        self.gather.usage = Usage(fresh + cached, self._counts.get("output_tokens", 0), cached)
