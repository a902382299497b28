"""From a line to its analysis: hidden characters, reading, walking, and the user's own patterns."""

import re
from collections.abc import Callable

from ostler.policy.shell import LONGEST, Analysis
from ostler.policy.shell.call import NO_FEED
from ostler.policy.shell.judge import judge
from ostler.policy.shell.patterns import first_match
from ostler.policy.shell.running import TooLong
from ostler.policy.shell.scope import Scope
from ostler.policy.shell.walk import Walk

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ue000\U000e0000-\U000e007f]"
)


def examine(
    line: str, cwd: str, exists: Callable[[str], bool], danger: tuple[str, ...], blacklist: tuple[str, ...]
) -> Analysis:
    """The analysis of a command line."""
    walk = Walk(exists, judge)
    if len(line) > LONGEST:
        walk.confirm("it is too long to be read")
        walk.readable = False
    else:
        _walk(walk, line, cwd)
    lines = (line, "; ".join(command.text for command in walk.commands), *(command.text for command in walk.commands))
    if found := first_match(blacklist, lines):
        walk.deny(f"it matches the blacklist pattern {found}")
    elif found := first_match(danger, lines):
        walk.confirm(f"it matches the danger pattern {found}")
    if _HIDDEN.search(line):
        walk.confirm_also("it holds characters that cannot be seen")
    why = walk.why or walk.stranger
    return Analysis(walk.verdict, why, tuple(walk.commands), walk.readable, tuple(walk.places.writes), not walk.level)


def _walk(walk: Walk, line: str, cwd: str) -> None:
    try:
        walk.text_here(line, Scope(cwd), NO_FEED)
        walk.walk_uncalled()
    except TooLong:
        walk.confirm("it holds more than can be followed")
    except RecursionError:
        walk.confirm("it is nested too deeply to be followed")
        walk.readable = False
