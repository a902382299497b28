"""What an awk program writes to or runs: `print > file`, pipes and `system`."""

import re

from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, PIPED, Call, Feed
from ostler.policy.shell.escapes import ansi_c

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<comment>\#[^\n]*)|(?P<word>[A-Za-z_]\w*)|(?P<space>[ \t\r\\]+)"""
    r"""|(?P<end>[;\n{}])|(?P<open>[(\[])|(?P<close>[)\]])|(?P<out>>>|>=|\|\||\|&|>|\|)|(?P<other>.)""",
    re.DOTALL,
)
_VALUE_BEFORE = re.compile(r"[\w)\]\"$]\Z")
_NO_VALUES = frozenset({"print", "printf", "return", "in", "else", "do"})


def judge(program: str, call: Call) -> str:
    """Why an awk program must be asked for."""
    if re.search(rf"(?:^|[;{{\n])\s*{HOLE}\s*(?:$|[;}}\n])", program):
        return "runs an awk program that is known only when it runs"
    tokens = _tokens(program)
    why = ""
    printing, level = False, 0
    for at, (kind, text) in enumerate(tokens):
        level += (kind == "open") - (kind == "close")
        if kind == "end":
            printing = False
        elif kind == "word" and text in {"print", "printf"}:
            printing, level = True, 0
        elif kind == "word" and text == "system":
            why = why or _command(tokens[at + 2 :], call)
        elif kind == "out" and text in {">", ">>", "|", "|&"} and printing and level <= 0:
            printing = False
            rest = tokens[at + 1 :]
            why = why or (_file(rest, call, text == ">>") if ">" in text else _command(rest, call, PIPED))
        elif kind == "out" and text in {"|", "|&"} and not printing:
            why = why or _command(tokens[max(0, at - 1) : at], call)
        elif kind == "other" and text == "@":
            why = why or "calls a function that is known only when it runs"
    return why


def _tokens(program: str) -> list[tuple[str, str]]:
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


def _literal(tokens: list[tuple[str, str]]) -> str:
    """The text of a lone string; a hole when it is put together from more."""
    ends = {"end", "close"}
    expression = []
    for kind, text in tokens:
        if kind in ends or (kind == "word" and text == "getline"):
            break
        expression.append((kind, text))
    if len(expression) == 1 and expression[0][0] == "string":
        return ansi_c(expression[0][1][1:-1])
    return HOLE


def _file(tokens: list[tuple[str, str]], call: Call, appends: bool) -> str:
    return call.overwrites(Arg(_literal(tokens)), appends=appends)


def _command(tokens: list[tuple[str, str]], call: Call, feed: Feed = NO_FEED) -> str:
    text = _literal(tokens)
    if text == HOLE:
        return "awk runs a command that is known only when it runs"
    call.text(text, feed)
    return ""
