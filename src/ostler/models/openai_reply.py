"""Parses replies of OpenAI-compatible servers, streamed or not."""

from typing import Any

from ostler.models.loose_json import LooseJsonError, write_json
from ostler.models.malformed_events import is_done, plain_text_of
from ostler.models.model_errors import ErrorResponse
from ostler.models.model_types import Usage
from ostler.models.openai_frames import (
    CallDelta,
    ChatChoice,
    ChatDelta,
    ChatFrame,
    ChatUsage,
    decode_frame,
    decode_frames,
    delta_from_message,
    valid_count,
)
from ostler.models.stream_reply import ReplyReader


class OpenAIReader(ReplyReader):
    """Reads one reply."""

    _choice: int | None = None  # the first choice; others are other answers to the same request

    def feed(self, events: list[bytes]) -> None:
        if b"[DONE]" in events:
            self.ended = True
            events = events[: events.index(b"[DONE]")]
        frames = decode_frames(events)
        self._collect(self._decode_each(events) if frames is None else frames)

    def feed_document(self, body: bytes) -> None:
        self._collect(self._decode_each([body], is_complete=True))
        self.ended = True

    def _decode_each(self, events: list[bytes], *, is_complete: bool = False) -> list[ChatFrame]:
        frames: list[ChatFrame] = []
        for event in filter(bytes.strip, events):
            if is_done(event):
                self.ended = True
                break
            if not is_complete and (text := plain_text_of(event)) is not None:
                self.collector.stray_text = text or self.collector.stray_text
                continue
            try:
                frames.append(decode_frame(event, is_complete=is_complete))
            except LooseJsonError as error:
                self._collect(frames)
                self._fail_unreadable(f"invalid JSON ({error})")
                return []
        return frames

    def _collect(self, frames: list[ChatFrame]) -> None:
        """Add the frames to the collector. Consecutive text is joined first, for speed."""
        run: list[str] = []
        for frame in frames:
            if frame.error:
                self._flush_text(run)
                self._fail_with_error(frame.error)
                return
            for choice in self._own_choices(frame.choices or []):
                delta = choice.delta or delta_from_message(choice.message)
                if (
                    delta.reasoning_content
                    or delta.reasoning
                    or delta.tool_calls
                    or delta.refusal
                    or delta.function_call
                ):
                    self._flush_text(run)
                    self._collect_special(delta)
                if delta.content:
                    run.append(delta.content)
                if choice.finish_reason:
                    self.collector.set_finish_reason(choice.finish_reason)
            if frame.usage is not None:
                self._set_usage(frame.usage)
            if frame.prompt_progress is not None:
                self.collector.report_reading(frame.prompt_progress)
        self._flush_text(run)

    def _own_choices(self, choices: list[ChatChoice]) -> list[ChatChoice]:
        """Return the parts of the first choice. Without indexes it is the first that has content in this event."""
        if len(choices) == 1 and choices[0].index in (None, self._choice):
            return choices
        indexes = [choice.index for choice in choices if choice.index is not None]
        if self._choice is None and indexes:
            self._choice = indexes[0]
        own: list[ChatChoice] = []
        for choice in choices:
            if choice.index is None and any(map(_has_content, own)):
                break
            if choice.index in (None, self._choice):
                own.append(choice)
        return own

    def _collect_special(self, delta: ChatDelta) -> None:
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            self.collector.add_thought(thought)
        if delta.refusal:
            self.collector.refused = True
            self.collector.add_text(delta.refusal)
        for call in delta.tool_calls or ():
            self._collect_call(call)
        if delta.function_call:
            self._collect_call(CallDelta(index=0, function=delta.function_call))

    def _collect_call(self, call: CallDelta) -> None:
        function = call.function
        self.collector.add_call(call.index, call.id or "", function.name or "", function.arguments or "")

    def _set_usage(self, counts: ChatUsage) -> None:
        details = counts.prompt_tokens_details
        cached = (details.cached_tokens if details else None) or counts.prompt_cache_hit_tokens
        token_counts = (counts.prompt_tokens, counts.completion_tokens, cached)
        self.collector.usage = Usage(*(valid_count(count) for count in token_counts))

    def _fail_with_error(self, error: Any) -> None:
        code = valid_count(error.get("code")) if isinstance(error, dict) else 0
        status = code if 400 <= code < 600 else 200
        self.collector.fail(
            ErrorResponse(self.collector.server, status, {}, write_json({"error": error}), self._secret_mask).to_error()
        )


def _has_content(choice: ChatChoice) -> bool:
    delta = choice.delta or delta_from_message(choice.message)
    return any(getattr(delta, name) for name in delta.__struct_fields__)
