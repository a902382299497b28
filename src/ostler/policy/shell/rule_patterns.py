"""Suggests the pattern of an "always allow" rule for a command."""

from collections.abc import Sequence

from ostler.policy.shell.program_table import group


def suggest_rule_pattern(words: Sequence[str]) -> str:
    """Return a pattern that allows this command with other arguments: `git checkout *`, `npm run build *`."""
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name in group("script-runners") and len(words) > 1 and not words[1].startswith("-"):
        return _prefix_pattern(words[:2])
    if name in group("script-runners") and len(words) > 2 and words[1] == "-m":
        return _prefix_pattern(words[:3])
    if name in group("exact-only"):
        return _exact_pattern(words)
    length = _prefix_length(name, words)
    if len(words) < length or any(word.startswith("-") for word in words[1:length]):
        return _exact_pattern(words)  # no subcommand, or an option before it
    return _prefix_pattern(words[:length])


def _prefix_length(name: str, words: Sequence[str]) -> int:
    if name in group("with-group"):
        return 3
    if name not in group("with-subcommand"):
        return 1
    return 3 if len(words) > 1 and f"{name}/{words[1]}" in group("nested-subcommands") else 2


def _prefix_pattern(words: Sequence[str]) -> str:
    return _exact_pattern(words) + " *"


def _exact_pattern(words: Sequence[str]) -> str:
    """Return a pattern that matches exactly these words; `*` is replaced by `?`."""
    return " ".join(words).replace("*", "?")
