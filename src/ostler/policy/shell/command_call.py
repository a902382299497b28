"""One command to be classified: name, arguments, standard input, and access to the evaluator."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord, literal_words
from ostler.policy.shell.shell_state import ShellState

if TYPE_CHECKING:
    from ostler.policy.shell.command_evaluator import CommandEvaluator


class StdinSource(msgspec.Struct, frozen=True):
    """The standard input of a command: nothing special, known text, a file, or a pipe with unknown content.

    `echoed` text was printed by `echo` and contains backslash escapes that only some shells decode.
    `tainted` text contains the text of a file or command.
    """

    kind: Literal["none", "text", "file", "pipe"] = "none"
    text: str = ""
    echoed: bool = False
    tainted: bool = False


NO_STDIN = StdinSource()
UNKNOWN_PIPE = StdinSource("pipe")


class CommandCall(msgspec.Struct):
    """A command to be classified. `unknown_reason` is set if the program or subcommand is unknown.

    `earlier_changes` is what the commands before this one may have done to files, see `file_changes`. `source` is the
    row or function that says why the command needs approval.
    """

    evaluator: "CommandEvaluator"
    shell: ShellState
    path: str
    name: str
    args: list[ExpandedWord]
    stdin: StdinSource
    unknown_reason: str = ""
    earlier_changes: frozenset[str] = frozenset()
    source: str = ""

    def evaluate_argv(self, argv: Sequence[ExpandedWord], stdin: StdinSource | None = None) -> None:
        """Evaluate another command that this one would start."""
        if argv:
            self.evaluator.evaluate_argv(argv, self.shell, self.stdin if stdin is None else stdin)

    def evaluate_words(self, *words: str) -> None:
        """Evaluate another command, given as plain words."""
        self.evaluate_argv(literal_words(*words))

    def evaluate_text(
        self, text: str, stdin: StdinSource | None = None, positional: tuple[str, ...] | None = ()
    ) -> None:
        """Evaluate shell text that this command would run."""
        self.check_text(text)
        self.evaluator.evaluate_text(text, self.shell, self.stdin if stdin is None else stdin, positional)

    def evaluate_texts(self, args: Sequence[ExpandedWord], stdin: StdinSource | None = None) -> None:
        """Evaluate several shell texts that this command would run, such as the values of an option."""
        for arg in args:
            self.evaluate_text(arg.text, stdin)

    def check_text(self, text: str) -> None:
        """Record that text to be run contains the text of a file or command, which can contain other commands."""
        if UNKNOWN_TEXT in text and any(arg.tainted for arg in self.args):
            self.evaluator.confirm("runs commands that are known only at run time")

    def overwrite_reason(self, arg: ExpandedWord, *, appends: bool = False) -> str:
        """Return why writing to a file needs approval, or an empty string."""
        return self.evaluator.filesystem.overwrite_reason(arg, self.shell, appends=appends)

    def any_overwrite_reason(self, args: Sequence[ExpandedWord]) -> str:
        """Return the first reason why writing to one of the files needs approval. All files are recorded as written."""
        return next(filter(None, [self.overwrite_reason(arg) for arg in args]), "")

    def written_text(self, arg: ExpandedWord) -> str | None:
        """Return the text that this command line wrote to a file, or None if it is unknown.

        Raises `KeyError` if it did not write the file.
        """
        for path in self.shell.resolve_paths(arg.text):
            if path in self.evaluator.written_files:
                return self.evaluator.written_files[path]
            if (
                path in self.evaluator.filesystem.written_paths
                and path.rpartition("/")[2] not in self.evaluator.filesystem.copies
            ):
                return None
        raise KeyError(arg.text)

    def arg_texts(self) -> list[str]:
        return [arg.text for arg in self.args]


CommandHandler = Callable[[CommandCall], str]  # returns why the command needs approval, or an empty string
