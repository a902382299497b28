"""Desktop notifications of terminals."""

import os
from collections.abc import Mapping

from ostler.frontends.tui.multiplexers import pass_through
from ostler.text.sanitise import sanitise

MAX_LENGTH = 200


def notification(message: str, env: Mapping[str, str] = os.environ) -> str:
    """Return the sequence that rings the bell and shows a message, in the form that the terminal knows.

    Kitty knows OSC 99, urxvt and its relatives OSC 777, most others OSC 9. Terminals ignore a form they do not know.
    """
    text = " ".join(sanitise(message[:MAX_LENGTH]).replace(";", ",").split())
    term = env.get("TERM", "")
    if "kitty" in term or env.get("KITTY_WINDOW_ID"):
        sequence = f"\x1b]99;;{text}\x1b\\"
    elif term.startswith(("rxvt", "foot")) or env.get("VTE_VERSION"):
        sequence = f"\x1b]777;notify;Ostler;{text}\x1b\\"
    else:
        sequence = f"\x1b]9;{text}\x1b\\"
    return f"{pass_through(sequence, env)}\a"
