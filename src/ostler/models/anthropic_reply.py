"""Parses replies of the Anthropic messages API, streamed or not."""

from typing import Any

from ostler.models.anthropic_events import AnthropicDelta, AnthropicEvent, decode_event, event_from_document
from ostler.models.anthropic_request import REDACTED_PREFIX
from ostler.models.loose_json import LooseJsonError, read_json, to_text
from ostler.models.malformed_events import is_done, plain_text_of
from ostler.models.model_errors import ErrorResponse, ModelError
from ostler.models.model_types import ModelRequest, ReplyChunk, Usage
from ostler.models.openai_frames import valid_count
from ostler.models.secret_mask import NO_SECRETS, SecretMask
from ostler.models.stream_reply import ReplyReader


class AnthropicReader(ReplyReader):
    """Reads one reply."""

    def __init__(self, server: str, request: ModelRequest, secret_mask: SecretMask = NO_SECRETS) -> None:
        super().__init__(server, request, secret_mask)
        self._signatures: dict[int, str] = {}
        self._initial_inputs: dict[int, str] = {}
        self._server_tool_blocks: set[int] = set()
        self._token_counts: dict[str, int] = {}

    def feed(self, events: list[bytes]) -> None:
        run: list[str] = []
        for data in filter(bytes.strip, events):
            event = decode_event(data)
            if event is None:
                if is_done(data):
                    self.ended = True
                    break
                event = self._decode_leniently(data)
            delta = event.delta
            if delta is not None and delta.text:
                run.append(delta.text)
                continue
            self._flush_text(run)
            self._handle_event(event, data)
            if self.collector.error:
                return
        self._flush_text(run)

    def feed_document(self, body: bytes) -> None:
        try:
            message = read_json(body)
        except LooseJsonError as error:
            self._fail_unreadable(_unreadable(error))
            return
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            self._fail_with_error(body)
            return
        self._update_usage(message.get("usage"))
        for index, block in enumerate(content):
            self._start_block(index, block)
            self._end_block(index)
        self.collector.set_finish_reason(to_text(message.get("stop_reason") or "end_turn"))
        self.ended = True

    def finish(self) -> list[ReplyChunk]:
        for index in tuple(self._initial_inputs):
            self._end_block(index)
        return super().finish()

    def _decode_leniently(self, data: bytes) -> AnthropicEvent:
        """Decode a malformed event as far as possible; plain text becomes `stray_text`."""
        if (text := plain_text_of(data)) is not None:
            self.collector.stray_text = text or self.collector.stray_text
            return AnthropicEvent()
        try:
            return event_from_document(read_json(data))
        except LooseJsonError as error:
            self._fail_unreadable(_unreadable(error))
            return AnthropicEvent()

    def _handle_event(self, event: AnthropicEvent, data: bytes) -> None:
        if event.type == "content_block_delta" and event.delta is not None:
            self._add_delta(event.index, event.delta)
        elif event.type == "content_block_start":
            self._start_block(event.index, event.content_block)
        elif event.type == "content_block_stop":
            self._end_block(event.index)
        elif event.type == "message_start" and isinstance(event.message, dict):
            self._update_usage(event.message.get("usage"))
        elif event.type == "message_delta":
            self._update_usage(event.usage)
            if event.delta is not None and event.delta.stop_reason:
                self.collector.set_finish_reason(event.delta.stop_reason)
        elif event.type == "message_stop":
            self.ended = True
        elif event.type == "error" or event.error or event.choices is not None:
            self._fail_with_error(data)

    def _fail_with_error(self, data: bytes) -> None:
        """Fail with the error object in `data`, or with a hint if the server speaks OpenAI's API."""
        server = self.collector.server
        if b'"choices"' not in data:
            self.collector.fail(ErrorResponse(server, 200, {}, data, self._secret_mask).to_error())
            return
        hint = "set the profile's apiKind to openai"
        self.collector.fail(ModelError(f"{server} replied in the format of OpenAI's API", code="wrong_url", hint=hint))

    def _start_block(self, index: int, block: Any) -> None:
        """Start a block. Its content may already be complete, always so in a reply that was not streamed."""
        if not isinstance(block, dict):
            return
        kind = block.get("type")
        self._server_tool_blocks.discard(index)
        if kind == "text":
            self.collector.add_text(to_text(block.get("text") or ""))
        elif kind == "thinking":
            self.collector.add_thought(to_text(block.get("thinking") or ""))
            self._signatures[index] = to_text(block.get("signature") or "")
        elif kind == "redacted_thinking":
            self._signatures[index] = REDACTED_PREFIX + to_text(block.get("data") or "")
        elif kind != "tool_use":
            self._server_tool_blocks.add(index)  # a server-side tool: its input is not a call for us
        else:
            self._initial_inputs[index] = to_text(block["input"]) if block.get("input") else ""
            self.collector.add_call(index, to_text(block.get("id") or ""), to_text(block.get("name") or ""), "")

    def _add_delta(self, index: int, delta: AnthropicDelta) -> None:
        if delta.thinking:
            self.collector.add_thought(delta.thinking)
        if delta.signature:
            self.collector.add_progress(len(delta.signature))
            self._signatures[index] = self._signatures.get(index, "") + delta.signature
        if delta.partial_json and index not in self._server_tool_blocks:
            self._initial_inputs.pop(index, None)  # the input is repeated in deltas
            self.collector.add_call(index, "", "", delta.partial_json)

    def _end_block(self, index: int) -> None:
        if arguments := self._initial_inputs.pop(index, ""):
            self.collector.add_call(index, "", "", arguments)
        signature = self._signatures.pop(index, "")
        if signature:
            self.collector.add_thought("", signature)

    def _update_usage(self, usage: Any) -> None:
        """Add the counts of an event. Input tokens are the sum of uncached, cache-read and cache-creation tokens."""
        if not isinstance(usage, dict):
            return
        self._token_counts.update({name: valid_count(value) for name, value in usage.items() if value is not None})
        cached = self._token_counts.get("cache_read_input_tokens", 0)
        uncached = self._token_counts.get("input_tokens", 0) + self._token_counts.get("cache_creation_input_tokens", 0)
        self.collector.usage = Usage(uncached + cached, self._token_counts.get("output_tokens", 0), cached)


def _unreadable(error: LooseJsonError) -> str:
    return f"an event that cannot be read ({str(error)[:100]})"
