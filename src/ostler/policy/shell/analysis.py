"""From a line to its analysis: hidden characters, reading, walking, and the user's own patterns."""

import re
from collections.abc import Callable

from ostler.policy.shell import MAX_LINE_LENGTH, Analysis
from ostler.policy.shell.classifier import danger_reason
from ostler.policy.shell.command_call import NO_STDIN
from ostler.policy.shell.command_evaluator import ScriptTooLong
from ostler.policy.shell.script_evaluator import ScriptEvaluator
from ostler.policy.shell.shell_state import ShellState
from ostler.policy.shell.user_patterns import first_match

_INVISIBLE_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ue000\U000e0000-\U000e007f]"
)


def analyse_line(
    line: str,
    cwd: str,
    exists: Callable[[str], bool],
    danger_patterns: tuple[str, ...],
    blacklist_patterns: tuple[str, ...],
) -> Analysis:
    """The analysis of a command line."""
    walk = ScriptEvaluator(exists, danger_reason)
    if len(line) > MAX_LINE_LENGTH:
        walk.confirm("it is too long to be read")
        walk.readable = False
    else:
        _evaluate_line(walk, line, cwd)
    lines = (line, "; ".join(command.text for command in walk.commands), *(command.text for command in walk.commands))
    if found := first_match(blacklist_patterns, lines):
        walk.deny(f"it matches the blacklist pattern {found}")
    elif found := first_match(danger_patterns, lines):
        walk.confirm(f"it matches the danger pattern {found}")
    if _INVISIBLE_CHARACTERS.search(line):
        walk.confirm_also("it holds characters that cannot be seen")
    why = walk.reason or walk.unknown_reason
    return Analysis(
        walk.verdict, why, tuple(walk.commands), walk.readable, tuple(walk.filesystem.written_paths), not walk.level
    )


def _evaluate_line(evaluator: ScriptEvaluator, line: str, cwd: str) -> None:
    try:
        evaluator.evaluate_inline(line, ShellState(cwd), NO_STDIN)
        evaluator.evaluate_uncalled()
    except ScriptTooLong:
        evaluator.confirm("it holds more than can be followed")
    except RecursionError:
        evaluator.confirm("it is nested too deeply to be followed")
        evaluator.readable = False
