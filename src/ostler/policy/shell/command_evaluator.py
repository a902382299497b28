"""Evaluates simple commands without running them: expansion, assignments, redirections, classification."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import msgspec

from ostler.policy.shell import arithmetic, data_leaks, env_variables, expansion, reevaluation
from ostler.policy.shell.argument_expansion import expand_argument
from ostler.policy.shell.command_call import NO_STDIN, UNKNOWN_PIPE, CommandCall, CommandHandler, StdinSource
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord, program_name
from ostler.policy.shell.file_changes import change_kind
from ostler.policy.shell.filesystem_view import FileSystemView, is_harmless_device
from ostler.policy.shell.program_table import group
from ostler.policy.shell.shell_parser import parse_shell
from ostler.policy.shell.shell_state import ShellState, ShellValue
from ostler.policy.shell.simple_command import (
    SimpleCommand,
    add_assignments,
    add_redirect_paths,
    describe_assignment,
    exported_assignments,
    make_simple_command,
)
from ostler.policy.shell.syntax_tree import (
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

MAX_DEPTH = 16  # eight wrappers: each adds a level for the command and one for the text it runs
MAX_COMMANDS = 1500
MAX_STATES = 32
MAX_ARGUMENTS = 40000
DangerLevel = Literal["deny", "confirm", "ordinary"]
_LEVELS: tuple[DangerLevel, ...] = ("ordinary", "confirm", "deny")
_UNKNOWN_NAME = "…"  # of a program
_FD_DUPLICATE = re.compile(r"\d+-?|-")
_EVALUATED_LATER = re.compile(r"[A-Za-z0-9_]\[[^\]]{0,200}?(?:\$\(|`)")
_OUTPUT_OPERATORS = frozenset({">", ">|", "&>", ">&", "<>", ">>", "&>>"})


class ScriptTooLong(Exception):
    """Raised when a script has too many commands, or a command too many arguments."""


class CommandEvaluator:
    """Evaluates single commands; the subclass evaluates scripts in execution order."""

    def __init__(
        self,
        exists: Callable[[str], bool],
        classify: CommandHandler,
        read_script: Callable[[str], str | None],
    ) -> None:
        self.read_script = read_script
        self.script_commands: list[SimpleCommand] = []
        self._active_scripts: set[str] = set()
        self._unknown_names = False
        self.filesystem = FileSystemView(exists)
        self.written_files: dict[str, str | None] = {}
        self.changes: set[str] = set()  # what the commands so far may have done to files that are not in the list
        self.commands: list[SimpleCommand] = []
        self.redirected_paths: list[str] = []
        self.input_paths: list[str] = []
        self.temporary_paths: list[str] = []
        self.level = 0
        self.reason = ""
        self.source = ""
        self.unknown_reason = ""
        self.unknown_source = ""
        self.readable = True
        self._classify = classify
        self._depth = 0
        self._stdin = NO_STDIN  # as redirected by `exec` without a command
        self._steps = 0
        self._active_bodies: set[int] = set()
        self.uncalled_functions: dict[int, tuple[ShellNode, ShellState]] = {}
        self._later_nodes: list[tuple[ShellNode, ShellState, frozenset[str]]] = []  # background jobs and traps

    # findings

    @property
    def command_count(self) -> int:
        """Number of commands found so far."""
        return len(self.commands)

    @property
    def verdict(self) -> DangerLevel:
        """The highest danger level found; unknown programs need approval like dangerous ones."""
        return _LEVELS[max(self.level, bool(self.unknown_reason))]

    def confirm(self, reason: str, source: str = "") -> None:
        """Record that the command line needs approval; the first reason and its source are kept."""
        self._raise_level(1, reason, source)

    def confirm_also(self, reason: str) -> None:
        """Record an additional reason why the command line needs approval."""
        self.level, self.reason = max(self.level, 1), f"{reason}; {self.reason}" if self.reason else reason

    def deny(self, reason: str) -> None:
        """Record that the command line is always denied."""
        self._raise_level(2, reason)

    def _raise_level(self, level: int, reason: str, source: str = "") -> None:
        if level > self.level:
            self.level, self.reason, self.source = level, reason, source

    # scripts inside commands

    def evaluate_node(self, node: ShellNode, shell: ShellState, stdin: StdinSource) -> None:
        """Evaluate any node."""
        raise NotImplementedError

    def evaluate_script(self, script: ScriptNode, shell: ShellState, stdin: StdinSource = NO_STDIN) -> None:
        """Evaluate a script."""
        raise NotImplementedError

    def run_text_later(self, text: str, shell: ShellState) -> None:
        """Record shell text that may run after the commands that follow it."""
        raise NotImplementedError

    def evaluate_text(
        self, text: str, shell: ShellState, stdin: StdinSource = NO_STDIN, positional: tuple[str, ...] | None = ()
    ) -> None:
        """Evaluate shell text in a copy of the shell."""
        copy = shell.fork()
        copy.positional = positional
        self.evaluate_inline(text, copy, stdin)

    def evaluate_inline(self, text: str, shell: ShellState, stdin: StdinSource = NO_STDIN) -> None:
        """Evaluate shell text in the same shell, as `eval` does."""
        can_enter = self._enter_level()
        try:
            script: ScriptNode | None = parse_shell(text) if can_enter else None
        except ShellSyntaxError as error:
            self.readable = False
            self.confirm(f"it cannot be parsed reliably: {error}")
            script = error.partial
        if script:
            self.evaluate_script(script, shell, stdin)
        self._depth -= 1

    @contextmanager
    def inside_script(self, path: str, call: CommandCall, *, unknown_names: bool = False) -> Iterator[bool]:
        """Evaluate a script file of `call`: its commands need no rules of their own. Yields False for a recursion.

        With `unknown_names`, a command whose name the file takes from elsewhere is an unknown program.
        """
        if path in self._active_scripts:
            yield False
            return
        self._active_scripts.add(path)
        count, unknown_reason = len(self.commands), self.unknown_reason
        outer, self._unknown_names = self._unknown_names, unknown_names
        try:
            yield True
        finally:
            self._unknown_names = outer
            self._active_scripts.discard(path)
            self.script_commands += self.commands[count:]
            del self.commands[count:]
            call.unknown_reason = call.unknown_reason or (self.unknown_reason if not unknown_reason else "")
            self.unknown_reason = unknown_reason

    def _enter_level(self) -> bool:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.confirm("commands are nested too deeply")
        return self._depth <= MAX_DEPTH

    def evaluate_substitutions(self, word: ShellWord, shell: ShellState, stdin: StdinSource) -> None:
        """Evaluate the substitutions inside a word."""
        for part in iter_parts(word.parts):
            if isinstance(part, SubstitutionPart):
                self.evaluate_script(
                    part.script, shell.fork(), UNKNOWN_PIPE if part.kind == ">" and stdin.kind == "none" else stdin
                )

    def check_expansions(self, word: ShellWord, shell: ShellState) -> None:
        """Check the expansions in a word that evaluate text a second time."""
        if reason := reevaluation.parts_reason(word.parts, shell):
            self.confirm(reason)

    # simple commands

    def evaluate_command(self, node: CommandNode, shell: ShellState, stdin: StdinSource) -> None:
        """Evaluate a simple command, once for each combination of possible variable values."""
        self._steps += 1
        if self._steps > MAX_COMMANDS:
            raise ScriptTooLong
        words = (*node.assignments, *node.words, *(redirect.target for redirect in node.redirects))
        for index, word in enumerate(words):
            if len(word.parts) > 1 or not isinstance(word.parts[0], LiteralPart):
                self.evaluate_substitutions(word, shell, stdin)
                if index >= len(node.assignments):  # an assignment is checked when the ones before it are made
                    self.check_expansions(word, shell)
        states = self._variable_states(words, shell)
        if states is None:
            self._evaluate_once(node, shell, stdin)
            return
        before = shell.fork()
        for index, values in enumerate(states):
            copy = before.fork()
            copy.chosen_values = values
            self._evaluate_once(node, copy, stdin)
            copy.chosen_values = {}
            if index:
                shell.merge([copy])
            else:
                shell.replace_with(copy)

    @staticmethod
    def _variable_states(words: Sequence[ShellWord], shell: ShellState) -> list[dict[str, ShellValue]] | None:
        if not shell.variables:
            return None
        names = [part.name for word in words for part in word.parts if isinstance(part, ParameterPart)]
        ambiguous = shell.ambiguous_variables(names)
        if not ambiguous:
            return None
        combinations = itertools.product(*(values for _, values in ambiguous))
        chosen = list(itertools.islice(combinations, MAX_STATES + 1))
        if len(chosen) > MAX_STATES:
            return None
        return [dict(zip((name for name, _ in ambiguous), values, strict=True)) for values in chosen]

    def _evaluate_once(self, node: CommandNode, shell: ShellState, stdin: StdinSource) -> None:
        argv: list[ExpandedWord] = []
        for word in node.words:
            argv += expand_argument(word, shell)
            if len(argv) > MAX_ARGUMENTS:
                raise ScriptTooLong
        stdin = self.apply_redirects(node.redirects, shell, stdin if stdin.kind != "none" else self._stdin, node)
        if len(argv) == 1 and argv[0].text == "exec":
            self._stdin = stdin
        before = shell.fork()
        own_program = bool(argv) and "/" in argv[0].text and argv[0].text[0] != "/"
        names = [self._evaluate_assignment(word, shell, own_program) for word in node.assignments]
        if not argv:
            shell.exported = exported_assignments(shell, names, exports=shell.exports_all)
            return
        index = len(self.commands)
        assignments = (*shell.exported, *(describe_assignment(name, shell) for name in names))
        self.evaluate_argv(argv, shell, stdin)
        if index < len(self.commands):
            self.commands[index] = add_assignments(self.commands[index], assignments)
        if node.redirects and index < len(self.commands):
            self.commands[index] = add_redirect_paths(self.commands[index], node.redirects, shell)
        for name in names:
            shell.restore_variable(name, before)

    def _evaluate_assignment(self, word: ShellWord, shell: ShellState, own_program: bool) -> str:
        """Check an assignment and make it. Return the name; `own_program`: it is for a program of the project."""
        if reason := reevaluation.assignment_reason(word, shell):
            self.confirm(reason)
        name, value = expansion.expand_assignment(word, shell)
        is_restored = name == "PYTHONHOME" and value == UNKNOWN_TEXT and not arithmetic.is_tainted(word.parts, shell)
        if not is_restored and not (own_program and name in group("library-paths")):
            self.check_assignment(name, value, shell)
        _, index, parts = reevaluation.split_assignment(word)
        keeps_part = bool(index) or word.raw.startswith(f"{name}+=")
        tainted = arithmetic.is_tainted(parts, shell) or (keeps_part and name in shell.tainted)
        shell.assign(name, value, tainted=tainted, is_number=not keeps_part and arithmetic.is_number(parts, shell))
        return name

    def check_assignment(self, name: str, value: ShellValue, shell: ShellState) -> None:
        """Check the value of a variable: it may be a command, or be evaluated later."""
        for text in (value,) if isinstance(value, str) or value is None else value:
            self.check_array_index(text or "")
            env_variables.check_variable(self, name, text, shell)

    def check_array_index(self, text: str) -> None:
        """Check text that a builtin treats as a variable name: an array index in it can run a command."""
        if _EVALUATED_LATER.search(text):
            self.confirm("names an array element whose index runs a command")

    def evaluate_argv(self, argv: Sequence[ExpandedWord], shell: ShellState, stdin: StdinSource) -> None:
        """Record one command, then evaluate it as a function or alias, or classify it."""
        if self._enter_level():
            self.commands.append(make_simple_command(argv, shell, self.filesystem))
            head = argv[0]
            name = program_name(head) or (_UNKNOWN_NAME if self._unknown_names and not head.origin else "")
            if not name:
                self.confirm("the name of the command is known only at run time")
            elif not self._evaluate_definition(head.text, argv, shell, stdin):
                name = self.filesystem.copies.get(name, name)
                if UNKNOWN_TEXT in name:
                    self.confirm("runs a copy of a program that is known only at run time")
                index = len(self.commands) - 1
                unknown_reason = "its name is known only at run time" if name == _UNKNOWN_NAME else ""
                call = CommandCall(
                    self, shell, head.text, name, list(argv[1:]), stdin, unknown_reason, frozenset(self.changes)
                )
                changes = {change_kind(call)} - {""}  # before the handlers change the arguments
                if reason := self._classify(call):
                    self.confirm(reason, call.source)
                elif call.unknown_reason:
                    if not self.unknown_reason:
                        self.unknown_reason, self.unknown_source = call.unknown_reason, call.source
                    self.commands[index] = msgspec.structs.replace(
                        self.commands[index], unknown_reason=call.unknown_reason
                    )
                self._deny_devices()
                self.changes |= changes
        self._depth -= 1

    def _evaluate_definition(
        self, name: str, argv: Sequence[ExpandedWord], shell: ShellState, stdin: StdinSource
    ) -> bool:
        """Evaluate the body if the command is a function or alias of this line. Return whether it is one."""
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
        """Check every redirection and return the resulting standard input."""
        outputs: list[tuple[Redirect, ExpandedWord]] = []
        for redirect in redirects:
            if redirect.body is not None:
                self.evaluate_substitutions(redirect.body, shell, stdin)
                self.check_expansions(redirect.body, shell)
                stdin = self._text_stdin(redirect.body, "", redirect, shell, stdin)
            elif redirect.op == "<<<":
                stdin = self._text_stdin(redirect.target, "\n", redirect, shell, stdin)
            elif redirect.op == ">&" and redirect.fd == "0":
                stdin = UNKNOWN_PIPE
            elif redirect.op in _OUTPUT_OPERATORS:
                if arg := self._output_target(redirect, shell):
                    outputs.append((redirect, arg))
            else:
                source = self._input_source(redirect, shell, node)
                stdin = source if redirect.fd in {"", "0"} else stdin
        if outputs:
            self._record_written(outputs, shell, stdin, node)
        return stdin

    @staticmethod
    def _text_stdin(
        word: ShellWord, ending: str, redirect: Redirect, shell: ShellState, stdin: StdinSource
    ) -> StdinSource:
        if redirect.fd not in {"", "0"}:
            return stdin
        text = expansion.expand_unsplit(word.parts, shell) + ending
        return StdinSource("text", text, tainted=arithmetic.is_tainted(word.parts, shell))

    def _input_source(self, redirect: Redirect, shell: ShellState, node: CommandNode | CompoundNode) -> StdinSource:
        args = expansion.expand_word(redirect.target, shell)
        if len(args) != 1 or redirect.op == "<&":
            return UNKNOWN_PIPE
        arg = args[0]
        if arg.piped:
            return UNKNOWN_PIPE if arg.source_text is None else StdinSource("text", arg.source_text)
        if not arg.exact or arg.text.startswith(("/dev/tcp/", "/dev/udp/", "/dev/fd/")):
            return UNKNOWN_PIPE
        self.input_paths += shell.resolve_paths(arg.text)
        is_ssh_add = isinstance(node, CommandNode) and bool(node.words) and node.words[0].raw == "ssh-add"
        if not is_ssh_add and (reason := data_leaks.secret_input_reason(shell.resolve_paths(arg.text))):
            self.confirm(reason)
        for path in shell.resolve_paths(arg.text):
            if path in self.written_files:
                content = self.written_files[path]
                return UNKNOWN_PIPE if content is None else StdinSource("text", content)
        return StdinSource("file", arg.text)

    def _output_target(self, redirect: Redirect, shell: ShellState) -> ExpandedWord | None:
        """Check a file that is written to. Return it, or None if its name is unknown."""
        args = expansion.expand_word(redirect.target, shell)
        if len(args) != 1:
            self.confirm("redirects to several files")
            return None
        arg = args[0]
        if redirect.op == ">&" and _FD_DUPLICATE.fullmatch(arg.text):
            return None
        if expansion.is_in_own_temporary_folder(redirect.target, shell):
            self.temporary_paths.append(redirect.target.raw)
            return None
        self._record_redirect(arg, shell)
        if reason := self.filesystem.overwrite_reason(arg, shell, appends=redirect.op in {">>", "&>>"}):
            self.confirm(reason)
            self._deny_devices()
        if redirect.target.raw == "!":
            self.confirm("redirects to !, which some shells treat as a forced overwrite")
        return arg if arg.exact else None

    def _record_redirect(self, arg: ExpandedWord, shell: ShellState) -> None:
        paths = shell.resolve_paths(arg.text) if arg.exact else ()
        for path in paths or (arg.text.replace(UNKNOWN_TEXT, "…"),):
            if not arg.piped and not is_harmless_device(path) and path not in self.redirected_paths:
                self.redirected_paths.append(self.filesystem.resolve_links(path))

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
        """Record what is written to files, because the line may run them later."""
        output = None
        if isinstance(node, CommandNode):
            output = expansion.command_output(node, shell, stdin_text=stdin.text if stdin.kind == "text" else None)
        for redirect, arg in outputs:
            if (
                output is None
                and isinstance(node, CommandNode)
                and (reason := data_leaks.socket_redirect_reason(arg.text, node))
            ):
                self.confirm(reason)
            content = output if redirect.op in {">", ">|", ">>"} and redirect.fd in {"", "1"} else None
            for path in shell.resolve_paths(arg.text):
                previous = self.written_files.get(path, "") if redirect.op == ">>" else ""
                self.written_files[path] = None if content is None or previous is None else previous + content


def shell_quote(text: str) -> str:
    """Quote a text so that a shell reads it unchanged."""
    return "'" + text.replace("'", "'\\''") + "'"
