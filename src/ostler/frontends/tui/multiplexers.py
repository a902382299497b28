"""Passes escape sequences through tmux and screen to the terminal that they run in."""

from collections.abc import Mapping

SCREEN_CHUNK = 76


def pass_through(sequence: str, env: Mapping[str, str]) -> str:
    """Return the sequence in a form that reaches the terminal.

    In tmux it is sent twice: tmux itself handles some sequences if `set-clipboard` is on, and passes others to its
    terminal if `allow-passthrough` is on. It ignores what its settings do not allow.
    """
    term = env.get("TERM", "")
    # with both variables, one runs in the other; tmux has other names of terminals, such as `screen-256color`
    in_screen = f"{term}.".startswith("screen.") and bool(env.get("STY"))
    if not in_screen and (env.get("TMUX") or term.startswith("tmux")):
        escaped = sequence.replace("\x1b", "\x1b\x1b")
        return f"{sequence}\x1bPtmux;{escaped}\x1b\\"
    if env.get("STY") or term.startswith("screen"):
        parts = (sequence[start : start + SCREEN_CHUNK] for start in range(0, len(sequence), SCREEN_CHUNK))
        return "".join(f"\x1bP{part}\x1b\\" for part in parts)
    return sequence
