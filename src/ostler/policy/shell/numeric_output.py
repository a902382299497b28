"""Recognises commands that can print only numbers, such as `wc -l` and `date +%s`."""

import re
from collections.abc import Sequence

from ostler.policy.shell.syntax_tree import (
    CommandNode,
    LiteralPart,
    ParameterPart,
    PipelineNode,
    Redirect,
    ScriptNode,
    ShellNode,
    ShellWord,
)

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


def prints_only_numbers(script: ScriptNode, defined: Sequence[str], numbers: frozenset[str]) -> bool:
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
