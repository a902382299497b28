"""Copies text to the clipboard with OSC 52, also through tmux and screen."""

import base64
from collections.abc import Mapping

MAX_BYTES = 74_000  # of the encoded text; many terminals ignore more
SCREEN_CHUNK = 76


def clipboard_sequence(text: str, env: Mapping[str, str]) -> str:
    """Return the escape sequence that copies the text, or an empty string if it is too long."""
    encoded = base64.b64encode(text.encode(errors="replace")).decode()
    if len(encoded) > MAX_BYTES:
        return ""
    sequence = f"\x1b]52;c;{encoded}\x07"
    if env.get("TMUX"):
        return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
    if env.get("TERM", "").startswith("screen"):
        parts = (sequence[start : start + SCREEN_CHUNK] for start in range(0, len(sequence), SCREEN_CHUNK))
        return "".join(f"\x1bP{part}\x1b\\" for part in parts)
    return sequence
