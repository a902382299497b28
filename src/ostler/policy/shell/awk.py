"""What an awk program writes to or runs: `print > file`, pipes and `system`."""

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
    """Why an awk program must be asked for."""
    if re.search(rf"(?:^|[;{{\n])\s*{UNKNOWN_TEXT}\s*(?:$|[;}}\n])", program):
        return "runs an awk program that is known only when it runs"
    tokens = _tokenize(program)
    why = ""
    printing, level = False, 0
    for at, (kind, text) in enumerate(tokens):
        level += (kind == "open") - (kind == "close")
        if kind == "end":
            printing = False
        elif kind == "word" and text in {"print", "printf"}:
            printing, level = True, 0
        elif kind == "word" and text == "system":
            why = why or _command_reason(tokens[at + 2 :], call)
        elif kind == "out" and text in {">", ">>", "|", "|&"} and printing and level <= 0:
            printing = False
            rest = tokens[at + 1 :]
            why = why or (
                _output_reason(rest, call, text == ">>") if ">" in text else _command_reason(rest, call, UNKNOWN_PIPE)
            )
        elif kind == "out" and text in {"|", "|&"} and not printing:
            why = why or _command_reason(tokens[max(0, at - 1) : at], call)
        elif kind == "other" and text == "@":
            why = why or "calls a function that is known only when it runs"
    return why


def _tokenize(program: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    before = ""
    while at < len(program):
        regex = None
        if program[at] == "/" and (before in _NO_VALUES or not _VALUE_BEFORE.search(before)):
            regex = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?[^\]\n]{0,200}\])*/").match(program, at)
        found = regex or _TOKEN.match(program, at)
        if not found:
            break
        kind = "other" if regex else found.lastgroup or "other"
        if kind not in {"space", "comment"}:
            tokens.append((kind, found.group()))
            before = found.group()
        at = found.end()
    return tokens


def _literal_text(tokens: list[tuple[str, str]]) -> str:
    """The text of a lone string; a hole when it is put together from more."""
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
        return "awk runs a command that is known only when it runs"
    call.evaluate_text(text, stdin)
    return ""
