"""Calls written as a list of Python calls, `[read(path="a"), bash(command="b")]`; read, never run."""

import ast
import re
from typing import Any

from ostler.models.dialects.call_json import KnownTools, TextCall
from ostler.models.dialects.incremental_reader import IncrementalReader, ParseGenerator
from ostler.models.loose_json import to_text

_HEAD = re.compile(r"\[\s*(?:([A-Za-z_][\w.]{0,99})(\(?))?")
_MAX_HEAD_LENGTH = 160
_MARK = re.compile(r"""'''|\"\"\"|['"\[\](){}]""")
_IN_STRING = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in ("'", '"', "'''", '"""')}
_MAX_LENGTH = 4_000_000
_JSON_WORDS = {"true": True, "false": False, "null": None}


def may_be_python(reader: IncrementalReader, tools: KnownTools) -> ParseGenerator[bool]:
    """Whether a list of calls of known tools begins here; waits for a few words and reads none."""
    while True:
        found = _HEAD.match(reader.buffer, reader.position)
        if found is None:
            return False
        name = found[1] or ""
        if found[2]:
            return name in tools
        waits = (
            found.end() == len(reader.buffer) and not reader.ended and found.end() - reader.position < _MAX_HEAD_LENGTH
        )
        if not waits or not any(tool.startswith(name) for tool in tools):
            return False
        yield


def read_python_calls(reader: IncrementalReader, tools: KnownTools) -> ParseGenerator[list[TextCall] | None]:
    """The calls of the list that begins here, which is read; None when it is something else after all."""
    text = yield from _read_to_closer(reader)
    return _parse_calls(text, tools) if len(text) <= _MAX_LENGTH else None


def _read_to_closer(reader: IncrementalReader) -> ParseGenerator[str]:
    """The text of a bracket to its closing one, or all there is."""
    pieces: list[str] = []
    depth = 0
    while True:
        found = _MARK.search(reader.buffer, reader.position)
        more = found is not None and found[0] in ("'", '"') and found.end() + 2 > len(reader.buffer)
        if found is None or (more and not reader.ended):  # two more characters may make it three quotes
            pieces.append(reader.read(found.start() if found else None))
            if reader.ended:
                return "".join(pieces)
            yield
            continue
        pieces.append(reader.read(found.end()))
        if found[0] in _IN_STRING:
            pieces += yield from _read_string(reader, found[0])
            continue
        depth += 1 if found[0] in "[({" else -1
        if not depth:
            return "".join(pieces)


def _read_string(reader: IncrementalReader, quote: str) -> ParseGenerator[list[str]]:
    """The rest of a string, its closing quote with it."""
    pieces: list[str] = []
    while True:
        found = _IN_STRING[quote].search(reader.buffer, reader.position)
        if found is not None:
            pieces.append(reader.read(found.end()))
            if found[0] == quote:
                return pieces
            continue
        kept = 0 if reader.ended else len(quote)  # the last characters may be half of what is looked for
        pieces.append(reader.read(max(reader.position, len(reader.buffer) - kept)))
        if reader.ended:
            return pieces
        yield


def _parse_calls(text: str, tools: KnownTools) -> list[TextCall] | None:
    try:
        tree = ast.parse(text, mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List) else []
        return [_parse_call(node, tools) for node in nodes] or None
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _parse_call(node: ast.expr, tools: KnownTools) -> TextCall:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("it is no call with named arguments")
    name = ast.unparse(node.func)
    if name not in tools:
        raise ValueError("nobody knows that tool")
    return TextCall(name, to_text({_keyword_name(word): _literal_value(word.value) for word in node.keywords}))


def _keyword_name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("an argument has no name")
    return keyword.arg


def _literal_value(node: ast.expr) -> Any:
    """A literal; the words of JSON are taken for what they mean there."""
    if isinstance(node, ast.Name) and node.id in _JSON_WORDS:
        return _JSON_WORDS[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        keys = [ast.literal_eval(key) if key else None for key in node.keys]
        if not all(isinstance(key, str) for key in keys):
            raise ValueError("a key is no text")
        return dict(zip(keys, map(_literal_value, node.values), strict=True))
    value = ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError("no such value can be told in JSON")
    return value
