"""Recognises keys that Textual's parser takes for others, and pasted text.

Terminals without the keyboard protocol of kitty send Alt-Enter as Esc and Enter, which Textual reads as Enter, and tmux
with `extended-keys` sends the keys of xterm's modifyOtherKeys, which it reads as characters. It types what it does not
know, such as a late answer of the terminal to another program, and reads escape characters in a paste as keys.
"""

import re
from collections.abc import Iterable

from textual import events
from textual._xterm_parser import XTermParser
from textual.keys import Keys
from textual.message import Message

ALT_ENTER = "\x1b\r"
PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"
MIN_HELD = 3  # shorter starts of `PASTE_START` may be keys
_OTHER_KEY = re.compile(r"\x1b\[27;(\d{1,3});(\d{1,6})~")
_UNKNOWN = re.compile(r"\x1b\[[?>=]?\d[\d;:]*[A-Za-z~]")


class KeyParser(XTermParser):
    """The parser of Textual with these keys. All of a paste is text, also the end of one in several chunks."""

    def __init__(self, debug: bool = False) -> None:
        self._held = ""  # the start of a sequence whose rest has not come yet
        self._paste: list[str] | None = None
        super().__init__(debug)

    def feed(self, data: str) -> Iterable[Message]:
        if not data:
            yield from super().feed(data)
            return
        data, self._held = self._held + data, ""
        while data:
            if self._paste is None:
                typed, start, data = data.partition(PASTE_START)
                if start:
                    self._paste = []
                else:
                    typed = self._hold(typed, PASTE_START, MIN_HELD)
                if typed:
                    yield from super().feed(typed)
            else:
                pasted, end, data = data.partition(PASTE_END)
                self._paste.append(pasted if end else self._hold(pasted, PASTE_END, 1))
                if end:
                    text, self._paste = "".join(self._paste), None
                    yield events.Paste(text.replace("\x00", ""))

    def _hold(self, data: str, sequence: str, least: int) -> str:
        """Hold back the end of the data if it is the start of the sequence. Return the data without it."""
        for size in range(min(len(sequence) - 1, len(data)), least - 1, -1):
            if data.endswith(sequence[:size]):
                self._held = data[-size:]
                return data[:-size]
        return data

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence == ALT_ENTER:
            return (events.Key("alt+enter", None),)
        if found := _OTHER_KEY.fullmatch(sequence):
            sequence = f"\x1b[{found[2]};{found[1]}u"
        keys = tuple(super()._sequence_to_key_events(sequence, alt))
        return keys or ((events.Key(Keys.Ignore, sequence),) if _UNKNOWN.fullmatch(sequence) else ())
