"""Recognizes tool calls written as a Python list, `[read(path="a"), bash(command="b")]`; evaluates nothing."""

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
    """Return whether a list of calls of known tools starts here. Consumes nothing."""
    while True:
        match = _HEAD.match(reader.buffer, reader.position)
        if match is None:
            return False
        name = match[1] or ""
        if match[2]:
            return name in tools
        undecided = (
            match.end() == len(reader.buffer) and not reader.ended and match.end() - reader.position < _MAX_HEAD_LENGTH
        )
        if not undecided or not any(tool.startswith(name) for tool in tools):
            return False
        yield


def read_python_calls(reader: IncrementalReader, tools: KnownTools) -> ParseGenerator[list[TextCall] | None]:
    """Read the list that starts here. Return its calls, or None if it contains anything else."""
    text = yield from _read_to_closer(reader)
    return _parse_calls(text, tools) if len(text) <= _MAX_LENGTH else None


def _read_to_closer(reader: IncrementalReader) -> ParseGenerator[str]:
    """Read up to the matching closing bracket, or all text."""
    parts: list[str] = []
    depth = 0
    while True:
        match = _MARK.search(reader.buffer, reader.position)
        partial_quote = match is not None and match[0] in ("'", '"') and match.end() + 2 > len(reader.buffer)
        if match is None or (partial_quote and not reader.ended):  # two more characters may make it three quotes
            parts.append(reader.read(match.start() if match else None))
            if reader.ended:
                return "".join(parts)
            yield
            continue
        parts.append(reader.read(match.end()))
        if match[0] in _IN_STRING:
            parts += yield from _read_string(reader, match[0])
            continue
        depth += 1 if match[0] in "[({" else -1
        if not depth:
            return "".join(parts)


def _read_string(reader: IncrementalReader, quote: str) -> ParseGenerator[list[str]]:
    """Read the rest of a string with its closing quote."""
    parts: list[str] = []
    while True:
        match = _IN_STRING[quote].search(reader.buffer, reader.position)
        if match is not None:
            parts.append(reader.read(match.end()))
            if match[0] == quote:
                return parts
            continue
        unread = 0 if reader.ended else len(quote)  # may be part of an escape or the closing quote
        parts.append(reader.read(max(reader.position, len(reader.buffer) - unread)))
        if reader.ended:
            return parts
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
        raise ValueError("not a call with named arguments")
    name = ast.unparse(node.func)
    if name not in tools:
        raise ValueError("unknown tool")
    return TextCall(name, to_text({_keyword_name(keyword): _literal_value(keyword.value) for keyword in node.keywords}))


def _keyword_name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("an argument has no name")
    return keyword.arg


def _literal_value(node: ast.expr) -> Any:
    """Return the value of a literal; `true`, `false` and `null` are accepted too."""
    if isinstance(node, ast.Name) and node.id in _JSON_WORDS:
        return _JSON_WORDS[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        keys = [ast.literal_eval(key) if key else None for key in node.keys]
        if not all(isinstance(key, str) for key in keys):
            raise ValueError("a key is not a string")
        return dict(zip(keys, map(_literal_value, node.values), strict=True))
    value = ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError("the value has no JSON form")
    return value
