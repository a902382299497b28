"""Evaluates a parsed script in execution order: lists, pipelines, branches, loops, functions."""

import re

from ostler.policy.shell import arithmetic, expansion, fork_bombs, reevaluation
from ostler.policy.shell.command_call import NO_STDIN, UNKNOWN_PIPE, StdinSource
from ostler.policy.shell.command_evaluator import CommandEvaluator
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.runtime_values import prints_only_names
from ostler.policy.shell.shell_parser import parse_shell
from ostler.policy.shell.shell_state import MAX_VALUES, ShellState, ShellValue
from ostler.policy.shell.simple_command import exported_assignments
from ostler.policy.shell.syntax_tree import (
    CommandNode,
    CompoundNode,
    FunctionNode,
    ListItem,
    ParameterPart,
    PipelineNode,
    ScriptNode,
    ShellNode,
    ShellWord,
)
from ostler.policy.shell.word_parser import ShellSyntaxError

MAX_LATER_NODES = 32
_PLAIN_NAME = re.compile(r"[\w./-]+")
_EXIT_COMMANDS = frozenset({"exit", "return", "break", "continue"})


class ScriptEvaluator(CommandEvaluator):
    """Evaluates scripts. Where a command may or may not run, the state afterwards includes both cases."""

    def evaluate_script(self, script: ScriptNode, shell: ShellState, stdin: StdinSource = NO_STDIN) -> None:
        """Evaluate the commands of a list in order, merging the states after `&&` and `||`."""
        states: list[ShellState] = []
        items = script.items
        for index, item in enumerate(items):
            if item.operator == ";":
                shell.merge(states)
                shell.finish_cd()
                states = []
            elif item.operator == "||":
                if self._is_exit(item):
                    self._evaluate_item(item, shell.fork(), stdin)
                    for state in (shell, *states):
                        state.cwd_if_cd_failed = ()
                    continue
                shell.merge(states)
                shell.finish_cd()
            self._evaluate_item(item, shell, stdin)
            if item.operator != ";" or (index + 1 < len(items) and items[index + 1].operator != ";"):
                states.append(shell.fork())
        shell.merge(states)
        shell.finish_cd()

    def _evaluate_item(self, item: ListItem, shell: ShellState, stdin: StdinSource) -> None:
        if item.background:
            self._run_later(item.node, shell)
        self.evaluate_node(item.node, shell.fork() if item.background else shell, stdin)

    @staticmethod
    def _is_exit(item: ListItem) -> bool:
        node = item.node
        if isinstance(node, CompoundNode) and node.kind == "group" and node.scripts[0].items:
            node = node.scripts[0].items[-1].node
        return isinstance(node, CommandNode) and bool(node.words) and node.words[0].raw in _EXIT_COMMANDS

    def evaluate_node(self, node: ShellNode, shell: ShellState, stdin: StdinSource) -> None:
        """Evaluate one command of any kind."""
        if isinstance(node, CommandNode):
            self.evaluate_command(node, shell, stdin)
        elif isinstance(node, PipelineNode):
            self._evaluate_pipeline(node, shell, stdin)
        elif isinstance(node, FunctionNode):
            self._define_function(node, shell)
        else:
            self._evaluate_compound(node, shell, stdin)

    def _evaluate_pipeline(self, node: PipelineNode, shell: ShellState, stdin: StdinSource) -> None:
        for stage in node.stages:
            copy = shell.fork()
            self.evaluate_node(stage, copy, stdin)
            shell.tainted |= copy.tainted  # some shells run the last command in the same process
            stdin_text = stdin.text if stdin.kind == "text" else None
            certain = expansion.known_output(ScriptNode([ListItem(stage)]), shell, stdin_text=stdin_text)
            text = (
                expansion.known_output(ScriptNode([ListItem(stage)]), shell, stdin_text=stdin_text, bash=True)
                if certain is None
                else certain
            )
            stdin = UNKNOWN_PIPE if text is None else StdinSource("text", text, echoed=certain is None)

    def _define_function(self, node: FunctionNode, shell: ShellState) -> None:
        if fork_bombs.is_fork_bomb(node):
            self.deny("a function starts itself endlessly")
        shell.functions[node.name] = node.body
        self.uncalled_functions[id(node.body)] = (node.body, shell.fork())

    def evaluate_uncalled(self) -> None:
        """Evaluate functions that were not called, with unknown arguments: they may still be called."""
        while self.uncalled_functions:
            _, (body, shell) = self.uncalled_functions.popitem()
            shell.positional = None
            self.evaluate_node(body, shell, UNKNOWN_PIPE)
        self._evaluate_later()

    def run_text_later(self, text: str, shell: ShellState) -> None:
        """Record shell text that may run after the commands that follow it."""
        try:
            self._run_later(CompoundNode("group", (parse_shell(text),)), shell)
        except ShellSyntaxError:
            self.readable = False
            self.confirm("sets a trap that cannot be parsed reliably")

    def _run_later(self, node: ShellNode, shell: ShellState) -> None:
        if len(self._later_nodes) < MAX_LATER_NODES:
            self._later_nodes.append((node, shell.fork(), frozenset(self.changes)))
        else:
            self.confirm("has too many background jobs to analyse")

    def _evaluate_later(self) -> None:
        """Evaluate background jobs and traps again, with the files as the rest of the line may have changed them."""
        count = len(self.commands)
        for node, shell, changes in self._later_nodes:
            if changes != self.changes:
                self.evaluate_node(node, shell, NO_STDIN)
                del self.commands[count:]

    # compound commands

    def _evaluate_compound(self, node: CompoundNode, shell: ShellState, stdin: StdinSource) -> None:
        for word in (*node.words, *(redirect.target for redirect in node.redirects)):
            self.evaluate_substitutions(word, shell, stdin)
            self.check_expansions(word, shell)
        stdin = self.apply_redirects(node.redirects, shell, stdin, node)
        if node.kind == "group":
            self.evaluate_script(node.scripts[0], shell, stdin)
        elif node.kind in {"subshell", "coproc"}:
            self.evaluate_script(node.scripts[0], shell.fork(), UNKNOWN_PIPE if node.kind == "coproc" else stdin)
        elif node.kind == "if":
            self._evaluate_if(node, shell, stdin)
        elif node.kind == "case":
            self._evaluate_branches(node.scripts, shell, stdin, may_skip=True)
        elif node.kind in {"loop", "for"}:
            self._evaluate_loop(node, shell, stdin)
        else:
            self._evaluate_test(node, shell)
            for script in node.scripts:
                self.evaluate_script(script, shell.fork(), stdin)

    def _evaluate_if(self, node: CompoundNode, shell: ShellState, stdin: StdinSource) -> None:
        self.evaluate_script(node.scripts[0], shell, stdin)
        self._evaluate_branches(node.scripts[1:], shell, stdin, may_skip=node.name != "else")

    def _evaluate_branches(
        self, scripts: tuple[ScriptNode, ...], shell: ShellState, stdin: StdinSource, may_skip: bool
    ) -> None:
        results = []
        for script in scripts:
            copy = shell.fork()
            self.evaluate_script(script, copy, stdin)
            results.append(copy)
        if not may_skip and results:
            shell.replace_with(results.pop())
        shell.merge(results)

    def _evaluate_loop(self, node: CompoundNode, shell: ShellState, stdin: StdinSource) -> None:
        if fork_bombs.is_endless_spawn_loop(node):
            self.deny("a loop starts programs endlessly")
        before = shell.fork()
        for _ in range(2):  # the second round sees the state after the first one
            if node.kind == "for":
                self._assign_loop_variable(node, shell)
            else:
                self._check_arithmetic(node, shell)
            state, changes = shell.snapshot(), set(self.changes)
            for script in node.scripts:
                self.evaluate_script(script, shell, stdin)
            changed = state != shell.snapshot() or changes != self.changes
            shell.merge([before])
            if not changed:
                break

    def _assign_loop_variable(self, node: CompoundNode, shell: ShellState) -> None:
        tainted = any(_is_tainted(word, shell) for word in node.words)
        if not node.words:
            tainted = arithmetic.is_tainted((ParameterPart("@", True),), shell)
        values = self._loop_values(node, shell)
        is_number = all(arithmetic.is_number(word.parts, shell) or word.raw.isdigit() for word in node.words)
        shell.assign(node.name, None, tainted=tainted, is_number=bool(node.words) and is_number)
        shell.variables[node.name] = values
        for value in values:
            self.check_assignment(node.name, value, shell)
        shell.exported = exported_assignments(shell, [node.name])
        if node.words and not any(arithmetic.is_tainted(word.parts, shell) for word in node.words):
            shell.file_names |= {node.name}

    def _check_arithmetic(self, node: CompoundNode, shell: ShellState) -> None:
        if not all(arithmetic.is_safe_expression(word.parts, shell) for word in node.words):
            self.confirm(arithmetic.REASON)

    @staticmethod
    def _loop_values(node: CompoundNode, shell: ShellState) -> tuple[ShellValue, ...]:
        if not node.words:
            return shell.positional or (None,)
        args = [arg for word in node.words for arg in expansion.expand_word(word, shell)]
        values: tuple[ShellValue, ...] = tuple(dict.fromkeys(_loop_value(arg) for arg in args))
        return values if 0 < len(values) <= MAX_VALUES else (None,)

    def _evaluate_test(self, node: CompoundNode, shell: ShellState) -> None:
        for word in node.words:
            self.check_array_index(word.raw)
        if node.kind == "arith":
            self._check_arithmetic(node, shell)
        elif reason := reevaluation.test_reason(node.words, shell):
            self.confirm(reason)
        if _PLAIN_NAME.fullmatch(node.name) and self.filesystem.may_exist(ExpandedWord(node.name), shell):
            self.confirm(f"some shells would overwrite {node.name}")


def _is_tainted(word: ShellWord, shell: ShellState) -> bool:
    """Return whether a loop variable gets text that is known only at run time, such as file names."""
    args = expansion.expand_word(word, shell)
    return arithmetic.is_tainted(word.parts, shell) or any(arg.is_glob for arg in args)


def _loop_value(arg: ExpandedWord) -> str | None:
    """Return the value of a loop variable; for an unknown file name, a value that is not an option."""
    if arg.exact:
        return arg.text
    if arg.is_glob and arg.literal:
        return ("./" if arg.text[0] in "*?[" else "") + re.sub(r"[*?]+|\[.+?\]", UNKNOWN_TEXT, arg.text)
    return f"./{UNKNOWN_TEXT}" if prints_only_names(arg) and arg.text == UNKNOWN_TEXT else None
