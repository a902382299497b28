"""Runs simple commands in thought: expansion, assignments, redirections, and the judge's word on each."""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ostler.policy.shell import data_leaks, env_variables, expansion
from ostler.policy.shell.command_call import NO_STDIN, UNKNOWN_PIPE, CommandCall, CommandHandler, StdinSource
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord, program_name
from ostler.policy.shell.filesystem_view import FileSystemView
from ostler.policy.shell.shell_parser import parse_shell
from ostler.policy.shell.shell_state import ShellState, ShellValue
from ostler.policy.shell.simple_command import SimpleCommand, add_redirect_paths, make_simple_command
from ostler.policy.shell.syntax_tree import (
    ArrayPart,
    CommandNode,
    CompoundNode,
    LiteralPart,
    ParameterPart,
    Redirect,
    ScriptNode,
    ShellNode,
    ShellWord,
    SubstitutionPart,
    iter_parts,
)
from ostler.policy.shell.word_parser import ShellSyntaxError

MAX_DEPTH = 16  # eight wrappers: each counts as a command and as the text it runs
MAX_COMMANDS = 1500
MAX_STATES = 32
MAX_ARGUMENTS = 40000
DangerLevel = Literal["deny", "confirm", "ordinary"]
_LEVELS: tuple[DangerLevel, ...] = ("ordinary", "confirm", "deny")
_FD_DUPLICATE = re.compile(r"\d+-?|-")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_EVALUATED_LATER = re.compile(r"[A-Za-z0-9_]\[[^\]]{0,200}?(?:\$\(|`)")
_OUTPUT_OPERATORS = frozenset({">", ">|", "&>", ">&", "<>", ">>", "&>>"})


class ScriptTooLong(Exception):
    """The script has more commands, or a command more arguments, than are followed."""


class CommandEvaluator:
    """Everything about single commands; the order in which they come is the subclass's matter."""

    def __init__(self, exists: Callable[[str], bool], classify: CommandHandler) -> None:
        self.filesystem = FileSystemView(exists)
        self.written_files: dict[str, str | None] = {}
        self.commands: list[SimpleCommand] = []
        self.level = 0
        self.reason = ""
        self.unknown_reason = ""
        self.readable = True
        self._classify = classify
        self._depth = 0
        self._stdin = NO_STDIN  # as a lone `exec` has left it
        self._steps = 0
        self._active_bodies: set[int] = set()
        self.uncalled_functions: dict[int, tuple[ShellNode, ShellState]] = {}

    # findings

    @property
    def command_count(self) -> int:
        """How many commands were met so far."""
        return len(self.commands)

    @property
    def verdict(self) -> DangerLevel:
        """The gravest thing found; a stranger must be asked about like what is dangerous."""
        return _LEVELS[max(self.level, bool(self.unknown_reason))]

    def confirm(self, reason: str) -> None:
        """A person must be asked."""
        self._raise_level(1, reason)

    def confirm_also(self, reason: str) -> None:
        """A person must be asked for this too, whatever else was found."""
        self.level, self.reason = max(self.level, 1), f"{reason}; {self.reason}" if self.reason else reason

    def deny(self, reason: str) -> None:
        """This is refused, whoever asks."""
        self._raise_level(2, reason)

    def _raise_level(self, level: int, reason: str) -> None:
        if level > self.level:
            self.level, self.reason = level, reason

    # scripts inside commands

    def evaluate_node(self, node: ShellNode, shell: ShellState, stdin: StdinSource) -> None:
        """Walk any node."""
        raise NotImplementedError

    def evaluate_script(self, script: ScriptNode, shell: ShellState, stdin: StdinSource = NO_STDIN) -> None:
        """Walk a script."""
        raise NotImplementedError

    def evaluate_text(
        self, text: str, shell: ShellState, stdin: StdinSource = NO_STDIN, positional: tuple[str, ...] | None = ()
    ) -> None:
        """Walk shell text in a shell of its own."""
        twin = shell.fork()
        twin.positional = positional
        self.evaluate_inline(text, twin, stdin)

    def evaluate_inline(self, text: str, shell: ShellState, stdin: StdinSource = NO_STDIN) -> None:
        """Walk shell text in this very shell, as `eval` does."""
        with_room = self._enter_level()
        try:
            script: ScriptNode | None = parse_shell(text) if with_room else None
        except ShellSyntaxError as error:
            self.readable = False
            self.confirm(f"it cannot be read for certain: {error}")
            script = error.partial
        if script:
            self.evaluate_script(script, shell, stdin)
        self._depth -= 1

    def _enter_level(self) -> bool:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.confirm("commands are wrapped in commands too deeply")
        return self._depth <= MAX_DEPTH

    def evaluate_substitutions(self, word: ShellWord, shell: ShellState, stdin: StdinSource) -> None:
        """Walk the substitutions inside a word."""
        for part in iter_parts(word.parts):
            if isinstance(part, SubstitutionPart):
                self.evaluate_script(
                    part.script, shell.fork(), UNKNOWN_PIPE if part.kind == ">" and stdin.kind == "none" else stdin
                )
            elif isinstance(part, ParameterPart) and part.op == "@P":
                self.confirm("expands a variable as a prompt, which runs what is in it")

    # simple commands

    def evaluate_command(self, node: CommandNode, shell: ShellState, stdin: StdinSource) -> None:
        """Run a simple command, once for each value its variables may have."""
        self._steps += 1
        if self._steps > MAX_COMMANDS:
            raise ScriptTooLong
        words = (*node.assignments, *node.words, *(redirect.target for redirect in node.redirects))
        for word in words:
            if len(word.parts) > 1 or not isinstance(word.parts[0], LiteralPart):
                self.evaluate_substitutions(word, shell, stdin)
        worlds = self._variable_states(words, shell)
        if worlds is None:
            self._evaluate_once(node, shell, stdin)
            return
        before = shell.fork()
        for at, world in enumerate(worlds):
            twin = before.fork()
            twin.chosen_values = world
            self._evaluate_once(node, twin, stdin)
            twin.chosen_values = {}
            if at:
                shell.merge([twin])
            else:
                shell.replace_with(twin)

    @staticmethod
    def _variable_states(words: Sequence[ShellWord], shell: ShellState) -> list[dict[str, ShellValue]] | None:
        if not shell.variables:
            return None
        names = [part.name for word in words for part in word.parts if isinstance(part, ParameterPart)]
        several = shell.ambiguous_variables(names)
        if not several:
            return None
        combinations = itertools.product(*(values for _, values in several))
        chosen = list(itertools.islice(combinations, MAX_STATES + 1))
        if len(chosen) > MAX_STATES:
            return None
        return [dict(zip((name for name, _ in several), values, strict=True)) for values in chosen]

    def _evaluate_once(self, node: CommandNode, shell: ShellState, stdin: StdinSource) -> None:
        argv: list[ExpandedWord] = []
        for word in node.words:
            argv += expansion.expand_word(word, shell)
            if len(argv) > MAX_ARGUMENTS:
                raise ScriptTooLong
        assigned = [self._evaluate_assignment(word, shell) for word in node.assignments]
        stdin = self.apply_redirects(node.redirects, shell, stdin if stdin.kind != "none" else self._stdin, node)
        if len(argv) == 1 and argv[0].text == "exec":
            self._stdin = stdin
        if not argv:
            for name, value in assigned:
                shell.assign(name, value)
            return
        before = {name: shell.variables.get(name) for name, _ in assigned}
        for name, value in assigned:
            shell.assign(name, value)
        at = len(self.commands)
        self.evaluate_argv(argv, shell, stdin)
        if node.redirects and at < len(self.commands):
            self.commands[at] = add_redirect_paths(self.commands[at], node.redirects, shell)
        for name, values in before.items():
            if values is None:
                shell.variables.pop(name, None)
            else:
                shell.variables[name] = values

    def _evaluate_assignment(self, word: ShellWord, shell: ShellState) -> tuple[str, ShellValue]:
        name, value = expand_assignment(word, shell)
        self.check_assignment(name, value, shell)
        return name, value

    def check_assignment(self, name: str, value: ShellValue, shell: ShellState) -> None:
        """Look at what a variable is set to: some are programs, and some values are evaluated later."""
        for text in (value,) if isinstance(value, str) or value is None else value:
            self.check_array_index(text or "")
            env_variables.check_variable(self, name, text, shell)

    def check_array_index(self, text: str) -> None:
        """Look at a text that a builtin takes for a variable's name: an index in it is run."""
        if _EVALUATED_LATER.search(text):
            self.confirm("names an array element whose index runs a command")

    def evaluate_argv(self, argv: Sequence[ExpandedWord], shell: ShellState, stdin: StdinSource) -> None:
        """Judge one command: record it, follow functions and aliases, ask the tables."""
        if self._enter_level():
            self.commands.append(make_simple_command(argv, shell, self.filesystem))
            head = argv[0]
            name = program_name(head)
            if not name:
                self.confirm("the name of the command is known only when it runs")
            elif not self._evaluate_definition(head.text, argv, shell, stdin):
                name = self.filesystem.copies.get(name, name)
                if UNKNOWN_TEXT in name:
                    self.confirm("runs a copy of a program that is known only when it runs")
                at, call = len(self.commands) - 1, CommandCall(self, shell, head.text, name, list(argv[1:]), stdin)
                if why := self._classify(call):
                    self.confirm(why)
                elif call.unknown_reason:
                    self.unknown_reason = self.unknown_reason or call.unknown_reason
                    self.commands[at] = msgspec.structs.replace(self.commands[at], unknown_reason=call.unknown_reason)
                self._deny_devices()
        self._depth -= 1

    def _evaluate_definition(
        self, name: str, argv: Sequence[ExpandedWord], shell: ShellState, stdin: StdinSource
    ) -> bool:
        """Whether the command is a function or alias of this line; then its body is walked."""
        body = shell.aliases.get(name) or shell.functions.get(name)
        if body is None or id(body) in self._active_bodies:
            return False
        self._active_bodies.add(id(body))
        if isinstance(body, str):
            self.evaluate_inline(" ".join([body, *(shell_quote(arg.text) for arg in argv[1:])]), shell, stdin)
        else:
            self.uncalled_functions.pop(id(body), None)
            outer, shell.positional = shell.positional, tuple(arg.text for arg in argv[1:])
            self.evaluate_node(body, shell, stdin)
            shell.positional = outer
        self._active_bodies.discard(id(body))
        return True

    # redirections

    def apply_redirects(
        self, redirects: Sequence[Redirect], shell: ShellState, stdin: StdinSource, node: CommandNode | CompoundNode
    ) -> StdinSource:
        """Look at every redirection, and tell what the command reads in the end."""
        outputs: list[tuple[Redirect, ExpandedWord]] = []
        for redirect in redirects:
            if redirect.body is not None:
                self.evaluate_substitutions(redirect.body, shell, stdin)
                stdin = self._text_stdin(expansion.expand_unsplit(redirect.body.parts, shell), redirect, stdin)
            elif redirect.op == "<<<":
                stdin = self._text_stdin(expansion.expand_unsplit(redirect.target.parts, shell) + "\n", redirect, stdin)
            elif redirect.op == ">&" and redirect.fd == "0":
                stdin = UNKNOWN_PIPE
            elif redirect.op in _OUTPUT_OPERATORS:
                if arg := self._output_target(redirect, shell):
                    outputs.append((redirect, arg))
            elif redirect.fd in {"", "0"}:
                stdin = self._input_source(redirect, shell)
        if outputs:
            self._record_written(outputs, shell, stdin, node)
        return stdin

    @staticmethod
    def _text_stdin(text: str, redirect: Redirect, stdin: StdinSource) -> StdinSource:
        return StdinSource("text", text) if redirect.fd in {"", "0"} else stdin

    def _input_source(self, redirect: Redirect, shell: ShellState) -> StdinSource:
        args = expansion.expand_word(redirect.target, shell)
        if len(args) != 1 or redirect.op == "<&":
            return UNKNOWN_PIPE
        arg = args[0]
        if arg.piped:
            return UNKNOWN_PIPE if arg.source_text is None else StdinSource("text", arg.source_text)
        if not arg.exact or arg.text.startswith(("/dev/tcp/", "/dev/udp/", "/dev/fd/")):
            return UNKNOWN_PIPE
        for path in shell.resolve_paths(arg.text):
            if path in self.written_files:
                content = self.written_files[path]
                return UNKNOWN_PIPE if content is None else StdinSource("text", content)
        return StdinSource("file", arg.text)

    def _output_target(self, redirect: Redirect, shell: ShellState) -> ExpandedWord | None:
        """Look at one file that is written to, and give it back when its name is known."""
        args = expansion.expand_word(redirect.target, shell)
        if len(args) != 1:
            self.confirm("redirects to several files")
            return None
        arg = args[0]
        if redirect.op == ">&" and _FD_DUPLICATE.fullmatch(arg.text):
            return None
        if why := self.filesystem.overwrite_reason(arg, shell, appends=redirect.op in {">>", "&>>"}):
            self.confirm(why)
            self._deny_devices()
        if redirect.target.raw == "!":
            self.confirm("redirects to ! , which some shells take as force")
        return arg if arg.exact else None

    def _deny_devices(self) -> None:
        if self.filesystem.written_devices:
            self.deny(f"writes to the device {self.filesystem.written_devices[0]}")

    def _record_written(
        self,
        outputs: list[tuple[Redirect, ExpandedWord]],
        shell: ShellState,
        stdin: StdinSource,
        node: CommandNode | CompoundNode,
    ) -> None:
        """Keep what this line puts into files, in case it runs them later."""
        said = None
        if isinstance(node, CommandNode):
            said = expansion.command_output(node, shell, stdin_text=stdin.text if stdin.kind == "text" else None)
        for redirect, arg in outputs:
            if (
                said is None
                and isinstance(node, CommandNode)
                and (why := data_leaks.socket_redirect_reason(arg.text, node))
            ):
                self.confirm(why)
            content = said if redirect.op in {">", ">|", ">>"} and redirect.fd in {"", "1"} else None
            for path in shell.resolve_paths(arg.text):
                before = self.written_files.get(path, "") if redirect.op == ">>" else ""
                self.written_files[path] = None if content is None or before is None else before + content


def shell_quote(text: str) -> str:
    """A text in quotes, so that a shell reads it back as it is."""
    return "'" + text.replace("'", "'\\''") + "'"


def expand_assignment(word: ShellWord, shell: ShellState) -> tuple[str, ShellValue]:
    """The name and value of `name=value`; the value is None when it cannot be told as a whole."""
    first = word.parts[0]
    head = _ASSIGNMENT.match(first.text) if isinstance(first, LiteralPart) else None
    if not head:
        return re.split(r"[\[=+]", word.raw, maxsplit=1)[0], None
    assert isinstance(first, LiteralPart)
    name, plus = head.groups()
    rest = (LiteralPart(first.text[head.end() :]), *word.parts[1:])
    if isinstance(word.parts[-1], ArrayPart):
        args = [arg for each in word.parts[-1].words for arg in expansion.expand_word(each, shell)]
        return name, None if plus else tuple(arg.text for arg in args)
    text = expansion.expand_unsplit(rest, shell)
    if not plus:
        return name, text
    before = shell.lookup(name)
    return name, before + text if isinstance(before, str) else None
