"""Finds file writes and commands in an awk program: `print > file`, pipes and `system`."""

import re

from ostler.policy.shell.command_call import NO_STDIN, UNKNOWN_PIPE, CommandCall, StdinSource
from ostler.policy.shell.escapes import decode_ansi_c
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<comment>\#[^\n]*)|(?P<word>[A-Za-z_]\w*)|(?P<space>[ \t\r\\]+)"""
    r"""|(?P<end>[;\n{}])|(?P<open>[(\[])|(?P<close>[)\]])|(?P<out>>>|>=|\|\||\|&|>|\|)|(?P<other>.)""",
    re.DOTALL,
)
_VALUE_BEFORE = re.compile(r"[\w)\]\"$]\Z")
_NO_VALUES = frozenset({"print", "printf", "return", "in", "else", "do"})


def danger_reason(program: str, call: CommandCall) -> str:
    """Return why an awk program needs approval, or an empty string. Commands in it are evaluated through `call`."""
    if re.search(rf"(?:^|[;{{\n])\s*{UNKNOWN_TEXT}\s*(?:$|[;}}\n])", program):
        return "runs an awk program that is known only at run time"
    tokens = _tokenize(program)
    reason = ""
    printing, level = False, 0
    for index, (kind, text) in enumerate(tokens):
        level += (kind == "open") - (kind == "close")
        if kind == "end":
            printing = False
        elif kind == "word" and text in {"print", "printf"}:
            printing, level = True, 0
        elif kind == "word" and text == "system":
            reason = reason or _command_reason(tokens[index + 2 :], call)
        elif kind == "out" and text in {">", ">>", "|", "|&"} and printing and level <= 0:
            printing = False
            rest = tokens[index + 1 :]
            reason = reason or (
                _output_reason(rest, call, text == ">>") if ">" in text else _command_reason(rest, call, UNKNOWN_PIPE)
            )
        elif kind == "out" and text in {"|", "|&"} and not printing:
            reason = reason or _command_reason(tokens[max(0, index - 1) : index], call)
        elif kind == "other" and text == "@":
            reason = reason or "calls a function that is known only at run time"
    return reason


def _tokenize(program: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    pos = 0
    previous = ""
    while pos < len(program):
        regex = None
        if program[pos] == "/" and (previous in _NO_VALUES or not _VALUE_BEFORE.search(previous)):
            regex = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?[^\]\n]{0,200}\])*/").match(program, pos)
        match = regex or _TOKEN.match(program, pos)
        if not match:
            break
        kind = "other" if regex else match.lastgroup or "other"
        if kind not in {"space", "comment"}:
            tokens.append((kind, match.group()))
            previous = match.group()
        pos = match.end()
    return tokens


def _literal_text(tokens: list[tuple[str, str]]) -> str:
    """Return the text of a single string literal, or `UNKNOWN_TEXT` for any other expression."""
    ends = {"end", "close"}
    expression = []
    for kind, text in tokens:
        if kind in ends or (kind == "word" and text == "getline"):
            break
        expression.append((kind, text))
    if len(expression) == 1 and expression[0][0] == "string":
        return decode_ansi_c(expression[0][1][1:-1])
    return UNKNOWN_TEXT


def _output_reason(tokens: list[tuple[str, str]], call: CommandCall, appends: bool) -> str:
    return call.overwrite_reason(ExpandedWord(_literal_text(tokens)), appends=appends)


def _command_reason(tokens: list[tuple[str, str]], call: CommandCall, stdin: StdinSource = NO_STDIN) -> str:
    text = _literal_text(tokens)
    if text == UNKNOWN_TEXT:
        return "awk runs a command that is known only at run time"
    call.evaluate_text(text, stdin)
    return ""
