"""Runs the analysis: parses the line, evaluates it and applies the user's patterns."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ostler.policy.shell import MAX_LINE_LENGTH, Analysis
from ostler.policy.shell.classifier import danger_reason
from ostler.policy.shell.command_call import NO_STDIN
from ostler.policy.shell.command_evaluator import ScriptTooLong
from ostler.policy.shell.script_evaluator import ScriptEvaluator
from ostler.policy.shell.shell_state import ShellState
from ostler.text.lazy_regex import linear_regex

_MAX_RE_LENGTH = 4096
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
    if pattern := _first_match(blacklist_patterns, lines):
        evaluator.deny(f"it matches the blacklist pattern {pattern}")
    elif pattern := _first_match(danger_patterns, lines):
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


# the user's blacklist and danger patterns, in linear time where re2 is installed


def _first_match(patterns: Sequence[str], lines: Sequence[str]) -> str:
    """Return the first pattern that matches one of the lines, or an empty string. Case is ignored."""
    for pattern in patterns:
        search = _compile_search(pattern)
        if any(search(line) for line in lines):
            return pattern
    return ""


@lru_cache(maxsize=256)
def _compile_search(pattern: str) -> Any:
    """Return a search function for a pattern; an invalid regular expression is searched as plain text."""
    try:
        return linear_regex(pattern, ignore_case=True).search
    except (ImportError, ValueError):  # without re2, or not in its syntax
        return _compile_re_search(pattern)


def _compile_re_search(pattern: str) -> Any:
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error:
        folded = pattern.casefold()
        return lambda line: folded in line.casefold()
    # `re` can take exponential time, so a longer line is not searched but treated as a match
    return lambda line: len(line) > _MAX_RE_LENGTH or compiled.search(line)
