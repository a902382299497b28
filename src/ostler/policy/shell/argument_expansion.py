"""Expands the words of a command to its arguments."""

from ostler.policy.shell import arithmetic, expansion, reevaluation
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.shell_state import ShellState
from ostler.policy.shell.syntax_tree import ArrayPart, ShellWord


def expand_argument(word: ShellWord, shell: ShellState) -> list[ExpandedWord]:
    """Expand one word of a command, and mark what is known only at run time."""
    args = expansion.expand_word(word, shell)
    if UNKNOWN_TEXT in word.raw:  # another command puts text there at run time, as `parallel` does for {}
        for arg in args:
            arg.tainted = True
    if arithmetic.is_tainted(word.parts, shell):
        for arg in args:
            arg.tainted, arg.from_output = True, arithmetic.is_from_output(word.parts, shell)
    if args and word.parts and isinstance(word.parts[-1], ArrayPart):
        args[-1].array = "unsafe index" if reevaluation.has_unsafe_index(word.parts, shell) else "plain"
    return args
