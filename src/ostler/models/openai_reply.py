"""Understands the replies of OpenAI-compatible servers, streamed or whole."""

from typing import Any

from ostler.models.failures import ModelFailure, Refusal
from ostler.models.gather import Gather
from ostler.models.hidden import NOTHING, Hidden
from ostler.models.loose_json import NotJson, write_json
from ostler.models.odd_events import is_done, words_in
from ostler.models.openai_frames import (
    CallDelta,
    Counts,
    Delta,
    Frame,
    read_frame,
    read_frames,
    sane_count,
    whole_delta,
)
from ostler.models.words import Chunk, Request, Usage


class OpenAIReader:
    """Reads one reply; see `stream_reply.Reader`."""

    def __init__(self, where: str, request: Request, hidden: Hidden = NOTHING) -> None:
        self.gather = Gather(where, request)
        self.over = False
        self._hidden = hidden

    @property
    def complete(self) -> bool:
        """Whether the server said how the reply ends; `[DONE]` alone will do once something came."""
        return bool(self.gather.reason or (self.over and self.gather.weight))

    def feed(self, events: list[bytes]) -> None:
        """The events of one read of the socket."""
        if b"[DONE]" in events:
            self.over = True
            events = events[: events.index(b"[DONE]")]
        frames = read_frames(events)
        self._take(self._one_by_one(events) if frames is None else frames)

    def document(self, body: bytes) -> None:
        """A reply that came whole."""
        self._take(self._one_by_one([body], whole=True))
        self.over = True

    def finish(self) -> list[Chunk]:
        """The last chunks."""
        return self.gather.finish()

    def _one_by_one(self, events: list[bytes], *, whole: bool = False) -> list[Frame]:
        frames: list[Frame] = []
        for event in filter(bytes.strip, events):
            if is_done(event):
                self.over = True
                break
            if not whole and (said := words_in(event)) is not None:
                self.gather.aside = said or self.gather.aside
                continue
            try:
                frames.append(read_frame(event, whole=whole))
            except NotJson as error:
                self._take(frames)
                self._broken(error)
                return []
        return frames

    def _broken(self, error: NotJson) -> None:
        """What cannot be read fails the reply, unless that has said already why it is over."""
        if not self.gather.reason:
            self.gather.fail(ModelFailure(f"{self.gather.where} sent broken JSON ({error})", code="malformed"))

    def _take(self, frames: list[Frame]) -> None:
        """Gather the frames; runs of plain text, nearly all of a long reply, are joined before anyone looks at them."""
        run: list[str] = []
        for frame in frames:
            if frame.error:
                self._end_run(run)
                self._fail(frame.error)
                return
            for choice in frame.choices or ():
                delta = choice.delta or whole_delta(choice.message)
                if (
                    delta.reasoning_content
                    or delta.reasoning
                    or delta.tool_calls
                    or delta.refusal
                    or delta.function_call
                ):
                    self._end_run(run)
                    self._rare(delta)
                if delta.content:
                    run.append(delta.content)
                if choice.finish_reason:
                    self.gather.ends(choice.finish_reason)
            if frame.usage is not None:
                self._count(frame.usage)
        self._end_run(run)

    def _end_run(self, run: list[str]) -> None:
        if run:
            self.gather.text("".join(run))
            run.clear()

    def _rare(self, delta: Delta) -> None:
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            self.gather.thought(thought)
        if delta.refusal:
            self.gather.refused = True
            self.gather.text(delta.refusal)
        for call in delta.tool_calls or ():
            self._call(call)
        if delta.function_call:
            self._call(CallDelta(index=0, function=delta.function_call))

    def _call(self, call: CallDelta) -> None:
        function = call.function
        self.gather.call(call.index, call.id or "", function.name or "", function.arguments or "")

    def _count(self, counts: Counts) -> None:
        details = counts.prompt_tokens_details
        cached = (details.cached_tokens if details else None) or counts.prompt_cache_hit_tokens
        told = (counts.prompt_tokens, counts.completion_tokens, cached)
        self.gather.usage = Usage(*(sane_count(count) for count in told))

    def _fail(self, error: Any) -> None:
        code = sane_count(error.get("code")) if isinstance(error, dict) else 0
        status = code if 400 <= code < 600 else 200
        self.gather.fail(Refusal(self.gather.where, status, {}, write_json({"error": error}), self._hidden).failure())
