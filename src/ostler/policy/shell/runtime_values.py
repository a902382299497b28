"""Detects options and words whose value is known only at run time."""

import re

from ostler.policy.shell.command_call import CommandCall
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.program_table import group, rows

_OPTION_NAME = re.compile(
    r"\$(?:\w*_)?(?:opts?|options?|args?|arguments|flags?|params?|cmd|command|action|verb|mode|switch(?:es)?|extras?)",
    re.IGNORECASE,
)
# commands that print file names, numbers and the like: their output is never an option
_PRINTS_NAMES = re.compile(
    r"(?:pwd|git|hg|dirname|basename|realpath|readlink|date|nproc|seq|wc|id|uname|arch|whoami|hostname|mktemp|which"
    r"|command -v|find|fd|ls|go (?:list|env)|npm (?:prefix|bin|root)|brew --\w+|docker|podman|kubectl|lsof|pgrep|pidof"
    r"|tput|getconf"
    r"|(?:e?grep|rg|ag) (?:-\w+ )*(?:-\w*l\w*|--files\S*)|sysctl -n|xcrun|pkg-config|\w+-config)\b[^|]*"
)
_FILTERS = re.compile(r"(?:head|tail|e?grep|rg|sort|uniq|tr|cut|wc|tac)\b[^|]*")
_FIND_FLAGS = group("find-flags")
# programs for which an unknown first word is probably an option
_OPTIONS_FIRST = group("interpreters") | {"tar", "gtar", "bsdtar", "sort", "awk", "gawk", "sed"}


def prints_only_names(arg: ExpandedWord) -> bool:
    """Return whether the unknown part of a word is the output of a command that prints names or numbers."""
    first, *rest = arg.origin.split(" | ")
    return bool(_PRINTS_NAMES.fullmatch(first)) and all(map(_FILTERS.fullmatch, rest))


def hidden_option_reason(call: CommandCall) -> str:
    """Return why a command needs approval: one of its options is known only at run time."""
    if call.name not in group("option-driven") and call.name not in rows("options"):
        return ""
    previous, has_predicates, operands = "", False, 0
    for arg in call.args:
        if operands and call.name in group("interpreters"):
            break
        is_value = previous.startswith("-") and previous != "--" and "=" not in previous and previous not in _FIND_FLAGS
        if _is_unknown_option(arg.text) and not is_value:
            return "has an option that is known only at run time"
        if arg.starts_unknown and not is_value and not prints_only_names(arg):
            options_expected = has_predicates if call.name in group("finders") else not operands
            if _may_be_option(call.name, arg, options_expected):
                return "has a word that is known only at run time and may be an option"
        previous = arg.text
        has_predicates = has_predicates or (previous[:1] in {"-", "(", "!"} and previous not in {"-L", "-H", "-P"})
        operands += previous[:1] != "-" and not is_value
    return ""


def _is_unknown_option(text: str) -> bool:
    return text.startswith("-" + UNKNOWN_TEXT) or (text.startswith("--") and UNKNOWN_TEXT in text.partition("=")[0])


def _may_be_option(name: str, arg: ExpandedWord, options_expected: bool) -> bool:
    """Return whether an unknown word may be an option; `options_expected` is set if options occur at its position."""
    if _OPTION_NAME.fullmatch(arg.origin) or (
        arg.may_split and (arg.origin[:1] != "$" or arg.origin[-1:] in {"@", "*"})
    ):
        return True
    if name in group("finders"):
        return options_expected or bool(arg.origin and arg.origin[0] != "$")
    return options_expected and arg.may_split and name in _OPTIONS_FIRST
