"""Finds places where a shell evaluates text a second time: arithmetic, array indexes, indirect names, prompts."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ostler.policy import danger_tables
from ostler.policy.shell import arithmetic, expansion
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.program_table import group
from ostler.policy.shell.runtime_values import prints_only_names
from ostler.policy.shell.shell_state import ShellState
from ostler.policy.shell.syntax_tree import (
    ArithmeticPart,
    ArrayPart,
    LiteralPart,
    ParameterPart,
    ShellWord,
    WordPart,
    iter_parts,
)

_NAME = "uses a variable name that is known only at run time, and an array index in it can run commands"
_PROMPT = "expands a variable as a prompt, which runs commands in it"
_COMPARISONS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_NAME_TESTS = frozenset({"-v", "-R"})
_HEAD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)?(\[|\+?=)")
_INDEX_END = re.compile(r"\]\+?=")


def parts_reason(parts: tuple[WordPart, ...], shell: ShellState) -> str:
    """Return why the expansions of a word need approval. Marks variables that `${name:=…}` sets."""
    for part in iter_parts(parts):
        if isinstance(part, ArithmeticPart) and not arithmetic.is_safe_expression(part.parts, shell):
            return arithmetic.REASON
        if isinstance(part, ParameterPart) and (reason := _parameter_reason(part, shell)):
            return reason
    return ""


def _parameter_reason(part: ParameterPart, shell: ShellState) -> str:
    if part.op == "@P":
        return _PROMPT
    if part.prefix == "!" and not _lists_names(part) and not _is_safe_reference(part, shell):
        return _NAME
    is_index = part.index not in {"", "@", "*"} and part.name not in shell.associative
    if is_index and not arithmetic.is_safe_expression(part.index_parts, shell):
        return arithmetic.REASON
    if part.op == ":" and not arithmetic.is_safe_expression(part.operand, shell):
        return arithmetic.REASON
    if part.op in {":=", "="} and arithmetic.is_tainted(part.operand, shell):
        if part.name in shell.integers:
            return arithmetic.REASON
        shell.tainted |= {part.name}
    return ""


def _lists_names(part: ParameterPart) -> bool:
    """Return whether `${!name…}` lists names or indexes instead of following a reference."""
    return part.op in {"*", "@"} or part.index in {"@", "*"}


def _is_safe_reference(part: ParameterPart, shell: ShellState) -> bool:
    direct = ParameterPart(part.name, part.quoted)
    if arithmetic.is_tainted((direct,), shell):
        return False
    value = expansion.expand_parameter(direct, shell)
    texts = (UNKNOWN_TEXT,) if value is None else (value,) if isinstance(value, str) else value
    return all(arithmetic.is_safe_name(text, shell) for text in texts)


# assignments


def split_assignment(word: ShellWord) -> tuple[str, tuple[WordPart, ...], tuple[WordPart, ...]]:
    """Return the name, the parts of the index and the parts of the value of `name[index]=value`."""
    first = word.parts[0] if word.parts else None
    head = _HEAD.match(first.text) if isinstance(first, LiteralPart) and not first.quoted else None
    if not head or not isinstance(first, LiteralPart):
        return "", (), word.parts
    rest = (LiteralPart(first.text[head.end() :]), *word.parts[1:])
    if head.group(2) != "[":
        return head.group(1) or "", (), rest
    for position in range(len(rest) - 1, -1, -1):  # the last `]=`: an index can contain one
        part = rest[position]
        ends = list(_INDEX_END.finditer(part.text)) if isinstance(part, LiteralPart) and not part.quoted else []
        if ends and isinstance(part, LiteralPart):
            end = ends[-1]
            index = (*rest[:position], LiteralPart(part.text[: end.start()]))
            return head.group(1) or "", index, (LiteralPart(part.text[end.end() :]), *rest[position + 1 :])
    return head.group(1) or "", (), rest


def assignment_reason(word: ShellWord, shell: ShellState) -> str:
    """Return why an assignment needs approval: its index or value is evaluated, or it sets a prompt or command."""
    name, index, value = split_assignment(word)
    if reason := parts_reason(word.parts, shell):
        return reason
    if index and name not in shell.associative and not arithmetic.is_safe_expression(index, shell):
        return arithmetic.REASON
    if name in shell.integers and not arithmetic.is_safe_expression(_scalars(value), shell):
        return arithmetic.REASON
    if name not in shell.associative and has_unsafe_index(value, shell):
        return arithmetic.REASON
    if arithmetic.is_tainted(value, shell):
        return command_variable_reason(name, expansion.expand_word(ShellWord(value, ""), shell))
    return ""


def has_unsafe_index(value: tuple[WordPart, ...], shell: ShellState) -> bool:
    """Return whether an index in `name=([index]=…)` is known only at run time."""
    indexes = [split_assignment(item)[1] for item in _array_items(value)]
    return not all(arithmetic.is_safe_expression(index, shell) for index in indexes)


def command_variable_reason(name: str, values: Sequence[ExpandedWord]) -> str:
    """Return why a variable with a command or prompt may not get a value that is known only at run time."""
    if name in danger_tables.PROMPT_VARIABLES or name == "PROMPT_COMMAND":
        return f"sets {name}, which the shell runs, to a value known only at run time"
    is_command = (
        name == "PATH" or name in group("command-variables") or danger_tables.COMMAND_VARIABLE_PATTERN.fullmatch(name)
    )
    if is_command and not all(prints_only_names(value) for value in values):
        return f"sets {name}, which contains a command, to a value known only at run time"
    return ""


def _array_items(value: tuple[WordPart, ...]) -> Iterator[ShellWord]:
    for part in value:
        if isinstance(part, ArrayPart):
            yield from part.words


def _scalars(value: tuple[WordPart, ...]) -> tuple[WordPart, ...]:
    parts = [part for item in _array_items(value) for part in item.parts]
    return (*(part for part in value if not isinstance(part, ArrayPart)), *parts)


# tests and builtins


def test_reason(words: Sequence[ShellWord], shell: ShellState) -> str:
    """Return why `[[ … ]]` needs approval: a number or a variable name in it is known only at run time."""
    for before, word in pairwise((*words, ShellWord((), ""))):
        operands = ([before, word] if word.raw in _COMPARISONS else []) + ([word] if before.raw in _COMPARISONS else [])
        if any(not arithmetic.is_safe_expression(operand.parts, shell) for operand in operands):
            return arithmetic.REASON
        if before.raw in _NAME_TESTS and not arithmetic.is_safe_expression(word.parts, shell):
            return _NAME
    return ""


def test_command_reason(args: Sequence[ExpandedWord], shell: ShellState) -> str:
    """Return why `[ … ]` needs approval: `-v` evaluates its operand, and an unknown word may be `-v`."""
    if any(arg.tainted and arg.may_split and not prints_only_names(arg) for arg in args):
        return "tests words that are known only at run time, and -v among them can run commands"
    for before, arg in pairwise(args):
        may_be_option = before.text in _NAME_TESTS or (before.tainted and before.starts_unknown)
        if may_be_option and arg.text != "]" and name_reason(arg, shell):
            return _NAME
        operands = [before] if arg.text in _COMPARISONS else [arg] if before.text in _COMPARISONS else []
        if shell.tests_evaluate and any(expression_reason(operand, shell) for operand in operands):
            return arithmetic.REASON
    return ""


def name_reason(arg: ExpandedWord, shell: ShellState) -> str:
    """Return why a word that a builtin uses as a variable name needs approval."""
    name = arg.text.partition("=")[0] if not arg.text.startswith("[") else arg.text
    if arg.tainted and UNKNOWN_TEXT in name:
        return _NAME
    return "" if arithmetic.is_safe_name(name, shell) else _NAME


def expression_reason(arg: ExpandedWord, shell: ShellState) -> str:
    """Return why a word that a builtin evaluates as arithmetic needs approval."""
    return "" if not arg.tainted and arithmetic.is_safe_text(arg.text, shell) else arithmetic.REASON
