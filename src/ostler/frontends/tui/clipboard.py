"""Copies text to the clipboard with OSC 52, also through tmux and screen."""

import base64
from collections.abc import Mapping

from ostler.frontends.tui.multiplexers import pass_through

MAX_BYTES = 74_000  # of the encoded text; many terminals ignore more


def clipboard_sequence(text: str, env: Mapping[str, str]) -> str:
    """Return the escape sequence that copies the text, or an empty string if it is too long."""
    encoded = base64.b64encode(text.encode(errors="replace")).decode()
    return pass_through(f"\x1b]52;c;{encoded}\x07", env) if len(encoded) <= MAX_BYTES else ""
