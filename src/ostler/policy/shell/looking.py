"""Finds command lines that only look at files.

They run with the workspace read-only, so a mistake here makes a command fail but never lets it write. The result must
depend on the text alone: it is computed once for the permission and again when the command runs.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from ostler.policy.danger_tables import split_names
from ostler.policy.shell import SimpleCommand, analyse
from ostler.policy.shell.program_table import group

_WRITING_OPTIONS = {
    "tree": ("-o",),
    "sort": ("-o", "--o", "--compress-program"),
    "file": ("-C", "--compile"),
    "date": ("-s", "--s"),
    "rg": ("--pre",),
}
_FIND_ACTIONS = ("-exec", "-ok", "-delete", "-fprint", "-fls")
_SED_ADDRESS = r"(?:\d+|\$|/[^/]*/)"
_SED_COMMAND = rf"(?:{_SED_ADDRESS}(?:,\+?{_SED_ADDRESS})?)?(?:[pdq=]|s/[^/]*/[^/]*/[gpiI\d]*)"
_SED_PROGRAM = re.compile(rf"\s*{_SED_COMMAND}\s*(?:;\s*{_SED_COMMAND}\s*)*;?")
_SED_OPTIONS = frozenset(split_names("-n -E -r -nE -En -nr -rn -u -z --quiet --silent --regexp-extended"))
_GIT_LISTINGS = {
    "branch": re.compile(
        r"(?: (?:-[arv]+|--(?:all|remotes|verbose|show-current|merged|no-merged)))*| (?:-l|--list)\b.*"
    ),
    "tag": re.compile(r"| (?:-l|--list|-n\d*)\b.*"),
    "remote": re.compile(r"| (?:-v|--verbose)| get-url .*"),
    "stash": re.compile(r" (?:list|show)\b.*"),
    "worktree": re.compile(r" list\b.*"),
    "reflog": re.compile(r"| show\b.*| -.*"),
    "config": re.compile(r" (?:--get\S*|--list|-l|get|list)\b.*"),
}


@lru_cache(maxsize=64)
def only_looks(line: str) -> bool:
    """Return whether a command line only looks at files: it neither writes one nor runs an unlisted program."""
    analysis = analyse(line, cwd="/", exists=lambda path: False, read_script=lambda path: None)
    writes = (*analysis.written_paths, *analysis.redirected_paths, *analysis.temporary_paths)
    is_plain = analysis.verdict == "ordinary" and analysis.parsed and not writes
    return is_plain and bool(analysis.commands) and all(map(_looks, analysis.commands))


def _looks(command: SimpleCommand) -> bool:
    name, *args = command.words
    if command.assignments:
        return False
    if check := _CHECKS.get(name):
        return check(args)
    return name in group("lookers") and not any(arg.startswith(_WRITING_OPTIONS.get(name, ("\0",))) for arg in args)


def _git_looks(args: Sequence[str]) -> bool:
    rest = list(args)
    while rest and rest[0] in ("--no-pager", "-P", "--no-optional-locks", "-C"):
        del rest[: 2 if rest[0] == "-C" else 1]
    verb, options = (rest[0], rest[1:]) if rest else ("", [])
    if any(option.startswith(("--output", "-O", "--open-files-in-pager")) for option in options):
        return False
    listing = _GIT_LISTINGS.get(verb)
    return verb in group("git-lookers") or bool(
        listing and listing.fullmatch("".join(f" {option}" for option in options))
    )


def _find_looks(args: Sequence[str]) -> bool:
    return not any(arg.startswith(_FIND_ACTIONS) for arg in args)


def _sed_looks(args: Sequence[str]) -> bool:
    """Accept one program that prints, deletes or replaces lines of its output; others may write files."""
    operands = [arg for arg in args if arg not in _SED_OPTIONS]
    return bool(operands) and bool(_SED_PROGRAM.fullmatch(operands[0])) and not any(a[:1] == "-" for a in operands)


def _uniq_looks(args: Sequence[str]) -> bool:
    """Accept at most one operand; a second one is the output file."""
    return sum(arg[:1] != "-" for arg in args) <= 1


_CHECKS: dict[str, Callable[[Sequence[str]], bool]] = {
    "git": _git_looks,
    "find": _find_looks,
    "sed": _sed_looks,
    "uniq": _uniq_looks,
}
