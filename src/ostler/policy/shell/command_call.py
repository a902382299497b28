"""One command as the judge sees it: its name, its arguments, what it is fed, and ways to look deeper."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from ostler.policy.shell.expanded_words import ExpandedWord, literal_words
from ostler.policy.shell.filesystem_view import FileSystemView
from ostler.policy.shell.shell_state import ShellState, ShellValue
from ostler.policy.shell.syntax_tree import ShellNode


class StdinSource(msgspec.Struct, frozen=True):
    """What a standard input is: nothing special, known text, a file, or a pipe whose content is not known.

    Text that was `echoed` holds backslashes that some shells would have read on the way.
    """

    kind: Literal["none", "text", "file", "pipe"] = "none"
    text: str = ""
    echoed: bool = False


NO_STDIN = StdinSource()
UNKNOWN_PIPE = StdinSource("pipe")


class EvaluationContext(Protocol):
    """What a call may ask of the walk that met it."""

    filesystem: FileSystemView
    written_files: dict[str, str | None]

    @property
    def command_count(self) -> int: ...
    def evaluate_argv(self, argv: Sequence[ExpandedWord], shell: ShellState, stdin: StdinSource) -> None: ...
    def evaluate_text(
        self, text: str, shell: ShellState, stdin: StdinSource, positional: tuple[str, ...] | None
    ) -> None: ...
    def evaluate_inline(self, text: str, shell: ShellState, stdin: StdinSource) -> None: ...
    def check_array_index(self, text: str) -> None: ...
    def evaluate_node(self, node: ShellNode, shell: ShellState, stdin: StdinSource) -> None: ...
    def check_assignment(self, name: str, value: ShellValue, shell: ShellState) -> None: ...
    def deny(self, reason: str) -> None: ...
    def confirm(self, reason: str) -> None: ...


class CommandCall(msgspec.Struct):
    """A command about to run; `stranger` says why nobody can tell what it does."""

    evaluator: EvaluationContext
    shell: ShellState
    path: str
    name: str
    args: list[ExpandedWord]
    stdin: StdinSource
    unknown_reason: str = ""

    def evaluate_argv(self, argv: Sequence[ExpandedWord], stdin: StdinSource | None = None) -> None:
        """Judge another command that this one would start."""
        if argv:
            self.evaluator.evaluate_argv(argv, self.shell, self.stdin if stdin is None else stdin)

    def evaluate_words(self, *words: str) -> None:
        """Judge another command, given as plain words."""
        self.evaluate_argv(literal_words(*words))

    def evaluate_text(
        self, text: str, stdin: StdinSource | None = None, positional: tuple[str, ...] | None = ()
    ) -> None:
        """Judge shell text that this command would run."""
        self.evaluator.evaluate_text(text, self.shell, self.stdin if stdin is None else stdin, positional)

    def overwrite_reason(self, arg: ExpandedWord, *, appends: bool = False) -> str:
        """Why writing to a file must be asked for."""
        return self.evaluator.filesystem.overwrite_reason(arg, self.shell, appends=appends)

    def any_overwrite_reason(self, args: Sequence[ExpandedWord]) -> str:
        """Why writing to one of several files must be asked for; all of them are looked at."""
        return next(filter(None, [self.overwrite_reason(arg) for arg in args]), "")

    def written_text(self, arg: ExpandedWord) -> str | None:
        """What this very line has put into a file before: its text, None when unknown. KeyError when it has not."""
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
        """The arguments as text."""
        return [arg.text for arg in self.args]


CommandHandler = Callable[[CommandCall], str]  # why the command must be asked for; empty when it is ordinary
