"""Runs the analysis: parses the line, evaluates it and applies the user's patterns."""

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
    read_script: Callable[[str], str | None],
    danger_patterns: tuple[str, ...],
    blacklist_patterns: tuple[str, ...],
) -> Analysis:
    evaluator = ScriptEvaluator(exists, danger_reason, read_script)
    if len(line) > MAX_LINE_LENGTH:
        evaluator.confirm("it is too long to analyse")
        evaluator.readable = False
    else:
        _evaluate_line(evaluator, line, cwd)
    lines = (
        line,
        "; ".join(command.text for command in evaluator.commands),
        *(command.text for command in (*evaluator.commands, *evaluator.script_commands)),
    )
    if pattern := first_match(blacklist_patterns, lines):
        evaluator.deny(f"it matches the blacklist pattern {pattern}")
    elif pattern := first_match(danger_patterns, lines):
        evaluator.confirm(f"it matches the danger pattern {pattern}")
    if _INVISIBLE_CHARACTERS.search(line):
        evaluator.confirm_also("it contains invisible characters")
    reason = evaluator.reason or evaluator.unknown_reason
    return Analysis(
        evaluator.verdict,
        reason,
        tuple(evaluator.commands),
        evaluator.readable,
        tuple(evaluator.filesystem.written_paths),
        not evaluator.level,
        tuple(evaluator.redirected_paths),
        tuple(evaluator.input_paths),
        tuple(dict.fromkeys(path for command in evaluator.script_commands for path in command.paths)),
        tuple(evaluator.temporary_paths),
        evaluator.source if evaluator.reason else evaluator.unknown_source,
    )


def _evaluate_line(evaluator: ScriptEvaluator, line: str, cwd: str) -> None:
    try:
        evaluator.evaluate_inline(line, ShellState(cwd), NO_STDIN)
        evaluator.evaluate_uncalled()
    except ScriptTooLong:
        evaluator.confirm("it is too large to analyse")
    except RecursionError:
        evaluator.confirm("it is nested too deeply to analyse")
        evaluator.readable = False
