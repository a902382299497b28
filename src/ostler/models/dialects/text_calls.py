"""Finds the calls that a model writes into its answer, while the answer streams."""

import re

from ostler.models.dialects.call_json import (
    Known,
    TextCall,
    json_value,
    may_be_call,
    mended_call,
    read_calls,
    read_object,
)
from ostler.models.dialects.call_python import may_be_python, python_calls
from ostler.models.dialects.call_tags import OPENERS, function_call, known_function
from ostler.models.dialects.outlet import Outlet
from ostler.models.dialects.passing import Fence, fence_here, pass_thought
from ostler.models.dialects.tape import Reading, Tape

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
_TRIGGER = re.compile(r"""<(?=[tfmi|/]|\Z)|\{(?=[\s"']|\Z)|\[(?=[\s{A-Za-z_]|\Z)|`(?=`|\Z)""")
_CALL_FENCES = ("", "json", "jsonc", "json5", "xml", "tool", "tool_call", "tool_calls", "tool_code", "function_call")


class TextCalls:
    """Feed it an answer in pieces of any size; text comes back as soon as it can be no call, calls when they are whole.

    A call counts if it is one of a known tool and is not only spoken of: not in quotes, code or reasoning. Tags say
    that a call is meant; where they stand within a line, nothing may follow on that line. JSON or Python calls alone
    must begin or end the answer, in a fence or not. A tagged call that is broken is passed on as it is, for the model
    to be told so; tags may also name a tool by what it is called elsewhere, `in_tags`.
    """

    def __init__(self, known: Known, in_tags: Known | None = None, *, tags_only: bool = False) -> None:
        self._known = known
        self._tagged_known = {**(in_tags or {}), **known}
        self._tags_only = tags_only
        self._tape = Tape()
        self._outlet = Outlet()
        self._idle = False
        self._scanning = self._scan()
        next(self._scanning)

    def feed(self, text: str) -> list[str | TextCall]:
        """What is certain by now."""
        if self._idle and _TRIGGER.search(text) is None:
            self._outlet.say(text)
        else:
            self._tape.feed(text)
            next(self._scanning)
        return self._outlet.take()

    def finish(self) -> list[str | TextCall]:
        """The answer is over: what was held back."""
        self._tape.ended = True
        for _ in self._scanning:
            pass
        self._outlet.end()
        return self._outlet.take()

    def called(self) -> None:
        """A call was found here by other means; the blanks around it are nothing to show."""
        self._outlet.called()

    def _scan(self) -> Reading[None]:
        tape, outlet = self._tape, self._outlet
        while True:
            found = _TRIGGER.search(tape.window, tape.at)
            outlet.say(tape.take(found.start() if found else None))
            if found is not None:
                tape.mark()
                yield from self._look(found[0])
            elif tape.ended:
                return
            else:
                tape.mark()
                self._idle = True
                yield
                self._idle = False

    def _look(self, char: str) -> Reading[None]:
        """Something may begin here: read it if it does, else one character."""
        if char == "`":
            yield from self._ticks()
            return
        here = yield from self._tape.peek_literal(_LITERALS)
        if here in _WRAPPERS or here in OPENERS:
            yield from self._tags()
        elif here in _THOUGHTS and self._outlet.at_line_start:
            yield from pass_thought(self._tape, self._outlet, _THOUGHTS[here])
        elif here and self._outlet.just_called:
            self._tape.take(self._tape.at + len(here))  # a closing tag too many
        elif char != "<" and self._outlet.at_line_start and not self._tags_only:
            yield from self._bare()
        else:
            self._outlet.say(self._tape.take(self._tape.at + 1))

    def _tags(self) -> Reading[None]:
        quoted = self._outlet.last in ("`", '"', "'")
        calls = None if quoted else (yield from self._tagged())
        if calls is None:
            source = self._tape.source() or self._tape.take(self._tape.at + 1)
            self._outlet.say(source)
        elif self._outlet.at_line_start:
            self._outlet.call(calls)
        else:
            self._outlet.call_if_line_ends(calls, self._tape.source())

    def _tagged(self) -> Reading[list[TextCall] | None]:
        """The calls behind a tag; what was read of something else can be had back from the tape."""
        calls: list[TextCall] = []
        depth = 0
        while True:
            char = yield from self._tape.skip_blanks()
            tag = yield from self._tape.peek_literal((*_WRAPPERS, *_CLOSERS) if calls else _WRAPPERS)
            if tag:
                self._tape.take(self._tape.at + len(tag))
                depth += 1 if tag in _WRAPPERS else -1
                if depth <= 0:
                    break
                continue
            more = yield from (self._json_in_tags() if char in ("{", "[") else self._function(named=depth > 0))
            calls += more or ()
            if not more or not depth:
                break
        return calls or None

    def _function(self, *, named: bool) -> Reading[list[TextCall] | None]:
        name = yield from known_function(self._tape, self._tagged_known, named=named)
        if not name:
            return None
        return [(yield from function_call(self._tape, self._tagged_known[name], name))]

    def _json_in_tags(self) -> Reading[list[TextCall] | None]:
        if (yield from may_be_python(self._tape, self._tagged_known)):
            return (yield from python_calls(self._tape, self._tagged_known))
        if not (yield from may_be_call(self._tape, self._tagged_known)):
            return None
        text, whole = yield from json_value(self._tape)
        calls = read_calls(text, self._tagged_known, alone=False)
        if calls is None and not whole:
            text += yield from self._tape.until(_CLOSERS)
        mended = mended_call(text, self._tagged_known) if calls is None else None
        return [mended] if mended else calls

    def _bare(self) -> Reading[None]:
        calls = yield from self._lone()
        if calls is None:
            self._outlet.say(self._tape.source() or self._tape.take(self._tape.at + 1))
        else:
            self._outlet.call_if_first_or_last(calls, self._tape.source())

    def _lone(self) -> Reading[list[TextCall] | None]:
        """Calls that no tag marks as such."""
        if (yield from may_be_python(self._tape, self._known)):
            return (yield from python_calls(self._tape, self._known))
        likely = yield from may_be_call(self._tape, self._known)
        return (yield from self._lone_json()) if likely else None

    def _lone_json(self) -> Reading[list[TextCall] | None]:
        text, _ = yield from json_value(self._tape)
        calls = read_calls(text, self._known, alone=True)
        if calls is None and (yield from self._tape.peek()) in ("", "`"):
            mended = mended_call(text, self._known)
            calls = [mended] if mended and read_object(mended.arguments) is not None else None
        return calls or None

    def _ticks(self) -> Reading[None]:
        """Backticks: a fence at a line's start, where a call or plain code may stand, else nothing special."""
        if not self._outlet.at_line_start:
            self._outlet.say(self._tape.take(self._tape.at + 1))
            return
        fence = yield from fence_here(self._tape)
        if len(fence[1]) < 3:
            self._outlet.say(self._tape.take(fence.end(1)))
            return
        self._tape.take(fence.end())
        calls = None
        if fence[2].lower() in _CALL_FENCES and not self._tags_only:
            calls = yield from self._fenced(fence[1])
        if calls is None:
            source = self._tape.source()
            self._outlet.say(source)
            passing = Fence(self._tape, self._outlet, fence[1], self._tagged)
            yield from passing.pass_by(opening="\n" not in source)
        else:
            self._outlet.call_if_first_or_last(calls, self._tape.source())

    def _fenced(self, ticks: str) -> Reading[list[TextCall] | None]:
        char = yield from self._tape.skip_blanks()
        if char in ("{", "["):
            calls = yield from self._lone()
        else:
            calls = yield from self._tagged()
        if calls is None:
            return None
        yield from self._tape.skip_blanks()
        closer = yield from self._tape.peek_literal((ticks,))
        self._tape.take(self._tape.at + len(closer))
        return calls if closer or self._tape.ended else None
