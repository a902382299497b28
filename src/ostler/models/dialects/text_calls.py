"""Finds tool calls in a streamed reply."""

import re
from collections.abc import Callable

from ostler.models.dialects.call_buffer import CallBuffer
from ostler.models.dialects.call_json import (
    KnownTools,
    TextCall,
    may_be_call,
    parse_calls,
    parse_object,
    read_json_value,
    repair_call,
)
from ostler.models.dialects.call_python import may_be_python, read_python_calls
from ostler.models.dialects.call_tags import OPENERS, find_function, read_function_call
from ostler.models.dialects.incremental_reader import IncrementalReader, ParseGenerator
from ostler.models.dialects.skipped_spans import FenceSkipper, match_fence, skip_thought

_WRAPPERS = (
    "<tool_call>",
    "<tool_calls>",
    "<function_call>",
    "<function_calls>",
    "<minimax:tool_call>",
    "<|tool_call|>",
    "<|tool_call_start|>",
    "<|python_start|>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
)
_CLOSERS = (
    "</tool_call>",
    "</tool_calls>",
    "</function_call>",
    "</function_calls>",
    "</minimax:tool_call>",
    "</|tool_call|>",
    "<|/tool_call|>",
    "<|tool_call_end|>",
    "<|python_end|>",
    "<|eom_id|>",
    "<|eot_id|>",
)
_THOUGHTS = {"<think>": "</think>", "<thinking>": "</thinking>"}
_LITERALS = (*_WRAPPERS, *OPENERS, *_THOUGHTS, *_CLOSERS)
_TRIGGER = re.compile(r"""<(?=[tfmi|/]|\Z)|\{(?=[\s"']|\Z)|\[(?=[\s{A-Za-z_]|\Z)|`(?=`|\Z)|~(?=~|\Z)""")
_CALL_FENCES = ("", "json", "jsonc", "json5", "xml", "tool", "tool_call", "tool_calls", "tool_code", "function_call")


class TextCallFinder:
    """Splits an answer into text and calls. Text is returned as soon as it cannot be a call, calls when complete.

    A call must name a known tool and must not be in quotes, quotations, code or reasoning. Tagged calls inside a line
    are valid if nothing follows on that line. Untagged JSON or Python calls must end the answer, in a fence or not, and
    must not be in a text that the model was shown. An invalid tagged call is returned with its text, so that the model
    gets an error. Tagged calls may also use `tagged_aliases`.
    """

    def __init__(
        self,
        tools: KnownTools,
        tagged_aliases: KnownTools | None = None,
        *,
        tags_only: bool = False,
        was_shown: Callable[[str], bool] = lambda source: False,
        check_tagged: bool = False,
    ) -> None:
        """With `check_tagged`, tagged calls must not be in a text that the model was shown either."""
        self._tools = tools
        self._tagged_tools = {**(tagged_aliases or {}), **tools}
        self._tags_only = tags_only
        self._reader = IncrementalReader()
        self._call_buffer = CallBuffer(was_shown)
        self._tagged_was_shown = was_shown if check_tagged else lambda source: False
        self._idle = False
        self._scan_generator = self._scan()
        next(self._scan_generator)

    def feed(self, text: str) -> list[str | TextCall]:
        """Return the text and calls recognized so far."""
        if self._idle and _TRIGGER.search(text) is None:
            self._call_buffer.add_text(text)
        else:
            self._reader.feed(text)
            next(self._scan_generator)
        return self._call_buffer.take_output()

    def finish(self, *, more_follows: bool = False) -> list[str | TextCall]:
        """Return what was held back, at the end of the answer; with `more_follows`, the reply does not end here."""
        self._reader.ended = True
        for _ in self._scan_generator:
            pass
        self._call_buffer.finish(more_follows=more_follows)
        return self._call_buffer.take_output()

    def mark_call(self) -> None:
        """Note that the caller found a call here, so that the blanks around it are dropped."""
        self._call_buffer.mark_call()

    def _scan(self) -> ParseGenerator[None]:
        reader, call_buffer = self._reader, self._call_buffer
        while True:
            match = _TRIGGER.search(reader.buffer, reader.position)
            call_buffer.add_text(reader.read(match.start() if match else None))
            if match is not None:
                reader.mark()
                yield from self._try_read(match[0])
            elif reader.ended:
                return
            else:
                reader.mark()
                self._idle = True
                yield
                self._idle = False

    def _try_read(self, char: str) -> ParseGenerator[None]:
        """Read calls, a fence or reasoning if they start here, else one character."""
        if char in "`~":
            yield from self._read_backticks()
            return
        literal = yield from self._reader.peek_literal(_LITERALS)
        if literal in _WRAPPERS or literal in OPENERS:
            yield from self._read_tags()
        elif literal in _THOUGHTS and self._call_buffer.at_line_start:
            yield from skip_thought(self._reader, self._call_buffer, _THOUGHTS[literal])
        elif literal and self._call_buffer.just_called:
            self._reader.read(self._reader.position + len(literal))  # an extra closing tag
        elif char != "<" and self._call_buffer.at_line_start and self._allows_untagged:
            yield from self._read_untagged()
        else:
            self._call_buffer.add_text(self._reader.read(self._reader.position + 1))

    @property
    def _allows_untagged(self) -> bool:
        return not self._tags_only and not self._call_buffer.context.is_quoted

    def _read_tags(self) -> ParseGenerator[None]:
        quoted = self._call_buffer.context.is_quoted
        calls = None if quoted else (yield from self._read_tagged_calls())
        if calls is None:
            source = self._reader.text_since_mark() or self._reader.read(self._reader.position + 1)
            self._call_buffer.add_text(source)
        elif self._tagged_was_shown(self._reader.text_since_mark()):
            self._call_buffer.add_calls_if_last(calls, self._reader.text_since_mark())
        elif self._call_buffer.at_line_start:
            self._call_buffer.add_calls(calls, self._reader.text_since_mark())
        else:
            self._call_buffer.add_calls_if_line_ends(calls, self._reader.text_since_mark())

    def _read_tagged_calls(self) -> ParseGenerator[list[TextCall] | None]:
        """Read the calls after a tag. Return None if there are none; the text read can be recovered from the reader."""
        calls: list[TextCall] = []
        depth = 0
        while True:
            char = yield from self._reader.skip_blanks()
            tag = yield from self._reader.peek_literal((*_WRAPPERS, *_CLOSERS) if calls else _WRAPPERS)
            if tag:
                self._reader.read(self._reader.position + len(tag))
                depth += 1 if tag in _WRAPPERS else -1
                if depth <= 0:
                    break
                continue
            more = yield from (
                self._read_tagged_json() if char in ("{", "[") else self._read_function(allow_bare_name=depth > 0)
            )
            calls += more or ()
            if not more or not depth:
                break
        return calls or None

    def _read_function(self, *, allow_bare_name: bool) -> ParseGenerator[list[TextCall] | None]:
        name = yield from find_function(self._reader, self._tagged_tools, allow_bare_name=allow_bare_name)
        if not name:
            return None
        return [(yield from read_function_call(self._reader, self._tagged_tools[name], name))]

    def _read_tagged_json(self) -> ParseGenerator[list[TextCall] | None]:
        if (yield from may_be_python(self._reader, self._tagged_tools)):
            return (yield from read_python_calls(self._reader, self._tagged_tools))
        if not (yield from may_be_call(self._reader, self._tagged_tools)):
            return None
        text, is_complete = yield from read_json_value(self._reader)
        calls = parse_calls(text, self._tagged_tools, untagged=False)
        if calls is None and not is_complete:
            text += yield from self._reader.read_until(_CLOSERS)
        repaired = repair_call(text, self._tagged_tools) if calls is None else None
        return [repaired] if repaired else calls

    def _read_untagged(self) -> ParseGenerator[None]:
        calls = yield from self._read_untagged_calls()
        if calls is None:
            self._call_buffer.add_text(self._reader.text_since_mark() or self._reader.read(self._reader.position + 1))
        else:
            self._call_buffer.add_calls_if_last(calls, self._reader.text_since_mark())

    def _read_untagged_calls(self) -> ParseGenerator[list[TextCall] | None]:
        """Read calls without a tag. Return None if there are none."""
        if (yield from may_be_python(self._reader, self._tools)):
            return (yield from read_python_calls(self._reader, self._tools))
        likely = yield from may_be_call(self._reader, self._tools)
        return (yield from self._read_untagged_json()) if likely else None

    def _read_untagged_json(self) -> ParseGenerator[list[TextCall] | None]:
        text, _ = yield from read_json_value(self._reader)
        calls = parse_calls(text, self._tools, untagged=True)
        if calls is None and (yield from self._reader.peek()) in ("", "`"):
            repaired = repair_call(text, self._tools)
            calls = [repaired] if repaired and parse_object(repaired.arguments) is not None else None
        return calls or None

    def _read_backticks(self) -> ParseGenerator[None]:
        """Read backticks or tildes: a code fence at the start of a line, which may contain calls, else plain text."""
        if not self._call_buffer.at_line_start:
            self._call_buffer.add_text(self._reader.read(self._reader.position + 1))
            return
        fence = yield from match_fence(self._reader)
        if len(fence[1]) < 3:
            self._call_buffer.add_text(self._reader.read(fence.end(1)))
            return
        self._reader.read(fence.end())
        calls = None
        allows_calls = self._allows_untagged
        if fence[2].lower() in _CALL_FENCES and allows_calls:
            calls = yield from self._read_fenced(fence[1])
        if calls is None:
            source = self._reader.text_since_mark()
            self._call_buffer.add_text(source)
            read_calls = self._read_tagged_calls if allows_calls else None
            skipper = FenceSkipper(self._reader, self._call_buffer, fence[1], read_calls)
            yield from skipper.skip(opening="\n" not in source)
        else:
            self._call_buffer.add_calls_if_last(calls, self._reader.text_since_mark())

    def _read_fenced(self, ticks: str) -> ParseGenerator[list[TextCall] | None]:
        char = yield from self._reader.skip_blanks()
        if char in ("{", "["):
            calls = yield from self._read_untagged_calls()
        else:
            calls = yield from self._read_tagged_calls()
        if calls is None:
            return None
        yield from self._reader.skip_blanks()
        closer = yield from self._reader.peek_literal((ticks,))
        self._reader.read(self._reader.position + len(closer))
        return calls if closer or self._reader.ended else None
