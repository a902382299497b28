"""Decides whether a shell may evaluate a text as arithmetic: an array index in it can run any command.

Bash evaluates the value of each variable in an expression again, and the index of `a[…]` in that value is expanded
like a word. So `$((x))` runs a command if `x` holds `a[$(command)]`. Text that is known only at run time is *tainted*
here, unless it is a number or comes from the environment.
"""

import os
import re
from collections.abc import Iterable, Sequence

from ostler.policy.shell import expansion
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT
from ostler.policy.shell.program_table import group
from ostler.policy.shell.shell_state import ShellState, ShellValue
from ostler.policy.shell.syntax_tree import (
    ArithmeticPart,
    ArrayPart,
    CommandNode,
    LiteralPart,
    ParameterPart,
    PipelineNode,
    Redirect,
    ScriptNode,
    ShellNode,
    ShellWord,
    SubstitutionPart,
    WordPart,
)

REASON = "evaluates text as arithmetic that is known only at run time, and such text can run commands"
ANY_VARIABLE = "*"  # in `ShellState.tainted`: variables with unknown names were set

_NUMERIC_PARAMETERS = frozenset("?#$!")
_PLAIN_VALUE = re.compile(r"[\w\s+\-/%<>=!&|^~(),:.#]*")
_IDENTIFIER = re.compile(r"(?<!\w)[A-Za-z_]\w*")
_LETTER = re.compile(r"[^\W\d]")
_EXPANDED_AGAIN = re.compile(r"[$`\\]")
_DEFAULT_OPERATORS = frozenset({":-", "-", ":=", "=", ":+", "+", ":?", "?"})


def is_safe_expression(parts: Iterable[WordPart], shell: ShellState) -> bool:
    """Return whether an arithmetic expression contains only numbers, operators and variables that hold numbers."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, LiteralPart):
            if _EXPANDED_AGAIN.search(part.text):
                return False
            texts.append(part.text)
        elif isinstance(part, ArithmeticPart):  # checked by itself
            texts.append("0")
        else:
            fragments = _fragments(part, shell)
            if fragments is None or not all(_is_safe_fragment(text, shell) for text in fragments):
                return False
            texts.append("0" if len(fragments) != 1 else fragments[0])
    return is_safe_text("".join(texts), shell)


def is_safe_text(text: str, shell: ShellState) -> bool:
    """Return whether every variable that occurs in an expression is safe to evaluate."""
    if _EXPANDED_AGAIN.search(text) or (UNKNOWN_TEXT in text and shell.tainted):
        return False
    return all(_is_safe_variable(name, shell, frozenset()) for name in set(_IDENTIFIER.findall(text)))


def is_safe_name(name: str, shell: ShellState) -> bool:
    """Return whether a text that a builtin uses as a variable name is safe: an index in it is evaluated."""
    if "[" not in name and UNKNOWN_TEXT not in name:
        return True
    index = name.partition("[")[2] if UNKNOWN_TEXT not in name.partition("[")[0] else name
    return is_safe_text(index, shell)


def is_tainted(parts: Iterable[WordPart], shell: ShellState) -> bool:
    """Return whether a word contains text known only at run time that is neither a number nor from the environment."""
    return any(_is_tainted_part(part, shell) for part in parts)


def is_from_output(parts: Iterable[WordPart], shell: ShellState) -> bool:
    """Return whether a word is tainted by more than the matches of a file pattern."""
    all_tainted, shell.tainted = shell.tainted, shell.tainted - shell.file_names
    try:
        return is_tainted(parts, shell)
    finally:
        shell.tainted = all_tainted


def is_number(parts: tuple[WordPart, ...], shell: ShellState) -> bool:
    """Return whether a word is one number, known or not."""
    rest = [part for part in parts if not (isinstance(part, LiteralPart) and not part.text)]
    if len(rest) != 1:
        return False
    part = rest[0]
    if isinstance(part, ParameterPart):
        return _is_length(part) or (not part.op and not part.prefix and part.name in shell.numbers)
    if isinstance(part, SubstitutionPart):
        return part.kind == "$" and _prints_numbers(part.script, shell)
    return isinstance(part, ArithmeticPart)


def _is_safe_fragment(text: str, shell: ShellState) -> bool:
    """Return whether expanded text may be part of an expression; names in it may combine with the text around it."""
    if UNKNOWN_TEXT in text or _LETTER.search(text):
        return not shell.tainted and bool(_PLAIN_VALUE.fullmatch(text.replace(UNKNOWN_TEXT, "")))
    return bool(_PLAIN_VALUE.fullmatch(text))


def _fragments(part: WordPart, shell: ShellState) -> list[str] | None:
    """Return the texts that a part can expand to, or None if they are tainted."""
    if isinstance(part, SubstitutionPart):
        known = expansion.known_output(part.script, shell) if part.kind == "$" else None
        if known is not None:
            return [known]
        return ["0"] if part.kind == "$" and _prints_numbers(part.script, shell) else None
    if not isinstance(part, ParameterPart) or _is_tainted_part(part, shell):
        return None
    if is_number((part,), shell) or part.name in _NUMERIC_PARAMETERS:
        return ["0"]
    values = _values(part.name, shell)
    texts = [text for value in values for text in _texts(value)]
    if part.op in _DEFAULT_OPERATORS:
        texts.append(expansion.expand_unsplit(part.operand, shell))
    elif part.op and any(_LETTER.search(text) for text in texts):
        return None
    return texts


def _is_length(part: ParameterPart) -> bool:
    return part.prefix == "#" or part.name == "#"


def _values(name: str, shell: ShellState) -> tuple[ShellValue, ...]:
    if not (name[0].isalpha() or name[0] == "_"):
        return (shell.lookup_parameter(name),)
    if name in shell.chosen_values:
        return (shell.chosen_values[name],)
    return shell.variables.get(name, (None,))


def _texts(value: ShellValue) -> tuple[str, ...]:
    return (UNKNOWN_TEXT,) if value is None else (value,) if isinstance(value, str) else value


def _is_tainted_part(part: WordPart, shell: ShellState) -> bool:
    if isinstance(part, SubstitutionPart):
        if part.kind != "$":
            return False
        return expansion.known_output(part.script, shell) is None and not _prints_numbers(part.script, shell)
    if isinstance(part, ArrayPart):
        return any(is_tainted(word.parts, shell) for word in part.words)
    if not isinstance(part, ParameterPart) or _is_length(part):
        return False
    return part.prefix == "!" or _is_tainted_parameter(part.name, shell) or is_tainted(part.operand, shell)


def _is_tainted_parameter(name: str, shell: ShellState) -> bool:
    if name in _NUMERIC_PARAMETERS:
        return False
    if name[0].isalpha() or name[0] == "_":
        return _is_tainted_variable(name, shell)
    value = shell.lookup_parameter(name)
    return value is None or UNKNOWN_TEXT in "".join(value)


def _is_tainted_variable(name: str, shell: ShellState) -> bool:
    if name in shell.tainted or (name in group("set-by-shell") and name != "PWD"):
        return True
    return ANY_VARIABLE in shell.tainted and name not in shell.variables


def _is_safe_variable(name: str, shell: ShellState, seen: frozenset[str]) -> bool:
    if name in shell.numbers or name in seen:
        return True
    if _is_tainted_variable(name, shell) or name in group("set-by-shell"):
        return False
    return all(
        _is_safe_value(text, name, shell, seen | {name}) for value in _values(name, shell) for text in _texts(value)
    )


def _is_safe_value(text: str, name: str, shell: ShellState, seen: frozenset[str]) -> bool:
    if text == UNKNOWN_TEXT and not shell.variables.get(name):  # unset, or from the environment
        return not shell.tainted or not (name in os.environ or name in group("texts-of-shell"))
    if UNKNOWN_TEXT in text:
        return not shell.tainted
    if not _PLAIN_VALUE.fullmatch(text) or len(seen) > 8:
        return False
    return all(_is_safe_variable(inner, shell, seen) for inner in set(_IDENTIFIER.findall(text)))


def _prints_numbers(script: ScriptNode, shell: ShellState) -> bool:
    return _prints_only_numbers(script, (*shell.functions, *shell.aliases), frozenset(shell.numbers))


# commands that can print only numbers, such as `wc -l` and `date +%s`

_ANY_WORD = "\x1f"  # stands for a quoted word that is known only at run time
# matched against the words of a command, each followed by a newline
_PRINTS_NUMBERS = re.compile(
    r"wc\n-[lcwmL]+\n(?:-\n)?"
    r"|nproc\n(?:--all\n)?"
    r"|id\n-r?[ug]r?\n(?:[\w.][\w.-]*\n)?"
    r"|getconf\n(?:_NPROCESSORS_(?:ONLN|CONF)|PAGE_?SIZE|LONG_BIT)\n"
    r"|tput\n(?:cols|lines|colors)\n"
    r"|seq\n(?:-w\n)?(?:-?\d+\n){1,3}"
    r"|git\nrev-list\n(?:[\w./~^@=-]+\n)*--count\n(?:[\w./~^@=-]+\n)*"
    r"|grep\n(?:-[EFPivwxc]+\n)*-[EFPivwx]*c[EFPivwx]*\n(?:-[EFPivwxc]+\n)*[^-\n\x1f][^\n\x1f]*\n(?:[\w./-]+\n)?"
    r"|grep\n-[oEPhm1]+\n\^?(?:\[0-9\]|\\d)[+*]?\$?\n"
    r"|tr\n-(?:dc|cd|d\n-c|c\n-d)\n(?:0-9|\[:digit:\])\n"
    r"|date\n(?:-u\n)?(?:(?:-d|--date|-r)\n[^\n]+\n)?\+(?:%-?[sYmdHMSNjuwVUyCekl])+\n"
    r"|stat\n(?:-L\n)?(?:-[cf]\n|--format=|-c)%[sYXZugihbdz]\n(?:[^-\n\x1f][^\n]*\n)+"
    r"|expr\n(?:[-+]?\d+\n|[-+*/%<>=|&():]+\n)+"
)
_KEEPS_NUMBERS = re.compile(r"(?:head|tail)\n(?:-n\n?)?-?\d*\n|(?:sort|uniq)\n(?:-[nru]+\n)?")


def _prints_only_numbers(script: ScriptNode, defined: Sequence[str], numbers: frozenset[str]) -> bool:
    """Return whether a script prints only numbers. `defined` are functions and aliases, `numbers` numeric variables."""
    return bool(script.items) and all(
        not item.background and _node_prints_numbers(item.node, defined, numbers) for item in script.items
    )


def _node_prints_numbers(node: ShellNode, defined: Sequence[str], numbers: frozenset[str]) -> bool:
    stages = list(node.stages) if isinstance(node, PipelineNode) else [node]
    while stages:
        stage = stages.pop()
        if not isinstance(stage, CommandNode) or stage.assignments or any(map(_mixes_output, stage.redirects)):
            return False
        line = "".join(f"{_word_text(word, numbers)}\n" for word in stage.words)
        if line.partition("\n")[0] in defined:
            return False
        if _PRINTS_NUMBERS.fullmatch(line) or re.fullmatch(r"echo\n\d+\n|true\n|:\n", line):
            return True
        if not _KEEPS_NUMBERS.fullmatch(line):
            return False
    return False


def _mixes_output(redirect: Redirect) -> bool:
    """Return whether a redirection may add error messages, which contain file names, to the output."""
    return redirect.op not in {"<", "<<", "<<-", "<<<"} and not (redirect.op in {">", ">>"} and redirect.fd == "2")


def _word_text(word: ShellWord, numbers: frozenset[str]) -> str:
    """Return the text of a word; `_ANY_WORD` if it is unknown and one word, a newline if it may be several."""
    texts = []
    for part in word.parts:
        if isinstance(part, LiteralPart):
            is_pattern = not part.quoted and set("*?[{~") & set(part.text) and part.text != "*"
            texts.append("\n\n" if is_pattern or "\n" in part.text else part.text)
        elif isinstance(part, ParameterPart) and part.name in numbers and not (part.op or part.prefix or part.index):
            texts.append("0")
        else:
            texts.append(_ANY_WORD if getattr(part, "quoted", False) else "\n\n")
    return "".join(texts)
