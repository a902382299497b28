"""Calls written as a list of Python calls, `[read(path="a"), bash(command="b")]`; read, never run."""

import ast
import re
from typing import Any

from ostler.models.dialects.call_json import Known, TextCall
from ostler.models.dialects.tape import Reading, Tape
from ostler.models.loose_json import compact

_HEAD = re.compile(r"\[\s*(?:([A-Za-z_][\w.]{0,99})(\(?))?")
_LONGEST_HEAD = 160
_MARK = re.compile(r"""'''|\"\"\"|['"\[\](){}]""")
_IN_STRING = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in ("'", '"', "'''", '"""')}
_MOST = 4_000_000
_JSON_WORDS = {"true": True, "false": False, "null": None}


def may_be_python(tape: Tape, known: Known) -> Reading[bool]:
    """Whether a list of calls of known tools begins here; waits for a few words and reads none."""
    while True:
        found = _HEAD.match(tape.window, tape.at)
        if found is None:
            return False
        name = found[1] or ""
        if found[2]:
            return name in known
        waits = found.end() == len(tape.window) and not tape.ended and found.end() - tape.at < _LONGEST_HEAD
        if not waits or not any(tool.startswith(name) for tool in known):
            return False
        yield


def python_calls(tape: Tape, known: Known) -> Reading[list[TextCall] | None]:
    """The calls of the list that begins here, which is read; None when it is something else after all."""
    text = yield from _to_end(tape)
    return _calls(text, known) if len(text) <= _MOST else None


def _to_end(tape: Tape) -> Reading[str]:
    """The text of a bracket to its closing one, or all there is."""
    pieces: list[str] = []
    depth = 0
    while True:
        found = _MARK.search(tape.window, tape.at)
        more = found is not None and found[0] in ("'", '"') and found.end() + 2 > len(tape.window)
        if found is None or (more and not tape.ended):  # two more characters may make it three quotes
            pieces.append(tape.take(found.start() if found else None))
            if tape.ended:
                return "".join(pieces)
            yield
            continue
        pieces.append(tape.take(found.end()))
        if found[0] in _IN_STRING:
            pieces += yield from _string(tape, found[0])
            continue
        depth += 1 if found[0] in "[({" else -1
        if not depth:
            return "".join(pieces)


def _string(tape: Tape, quote: str) -> Reading[list[str]]:
    """The rest of a string, its closing quote with it."""
    pieces: list[str] = []
    while True:
        found = _IN_STRING[quote].search(tape.window, tape.at)
        if found is not None:
            pieces.append(tape.take(found.end()))
            if found[0] == quote:
                return pieces
            continue
        kept = 0 if tape.ended else len(quote)  # the last characters may be half of what is looked for
        pieces.append(tape.take(max(tape.at, len(tape.window) - kept)))
        if tape.ended:
            return pieces
        yield


def _calls(text: str, known: Known) -> list[TextCall] | None:
    try:
        tree = ast.parse(text, mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List) else []
        return [_call(node, known) for node in nodes] or None
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _call(node: ast.expr, known: Known) -> TextCall:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("it is no call with named arguments")
    name = ast.unparse(node.func)
    if name not in known:
        raise ValueError("nobody knows that tool")
    return TextCall(name, compact({_named(word): _value(word.value) for word in node.keywords}))


def _named(word: ast.keyword) -> str:
    if word.arg is None:
        raise ValueError("an argument has no name")
    return word.arg


def _value(node: ast.expr) -> Any:
    """A literal; the words of JSON are taken for what they mean there."""
    if isinstance(node, ast.Name) and node.id in _JSON_WORDS:
        return _JSON_WORDS[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        keys = [ast.literal_eval(key) if key else None for key in node.keys]
        if not all(isinstance(key, str) for key in keys):
            raise ValueError("a key is no text")
        return dict(zip(keys, map(_value, node.values), strict=True))
    value = ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError("no such value can be told in JSON")
    return value
