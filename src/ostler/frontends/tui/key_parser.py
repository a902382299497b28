"""Recognises keys that Textual's parser takes for others.

Terminals without the keyboard protocol of kitty send Alt-Enter as Esc and Enter, which Textual reads as Enter, and tmux
with `extended-keys` sends the keys of xterm's modifyOtherKeys, which it reads as characters.
"""

import re
from collections.abc import Iterable

from textual import events
from textual._xterm_parser import XTermParser

ALT_ENTER = "\x1b\r"
_OTHER_KEY = re.compile(r"\x1b\[27;(\d{1,3});(\d{1,6})~")


class KeyParser(XTermParser):
    """The parser of Textual with these keys."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence == ALT_ENTER:
            return (events.Key("alt+enter", None),)
        if found := _OTHER_KEY.fullmatch(sequence):
            sequence = f"\x1b[{found[2]};{found[1]}u"
        return super()._sequence_to_key_events(sequence, alt)
