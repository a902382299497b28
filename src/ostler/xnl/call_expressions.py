"""Parses a call written as `Namespace.name({...})` or as JSON; evaluates nothing."""

import msgspec

from ostler.xnl.errors import CallError
from ostler.xnl.js_literals import LiteralReader
from ostler.xnl.tree import Value

MAX_LENGTH = 4_000_000

_CALL_SHAPE = "write one call as Namespace.name({ key: value })"


class CallExpression(msgspec.Struct, frozen=True):
    function: str
    arguments: dict[str, Value]


def parse_call(code: str) -> CallExpression:
    """Parse one call. Raises `CallError` for anything except `Namespace.name({...})` or JSON with literal values."""
    if len(code) > MAX_LENGTH:
        raise CallError(f"Send less at once: a call may have at most {MAX_LENGTH} characters")
    reader = LiteralReader(code)
    reader.skip_blanks()
    if reader.peek() == "{":
        return _read_json_call(reader)
    function = _read_function(reader)
    arguments = _read_arguments(reader)
    reader.skip_blanks()
    reader.accept(";")
    _expect_end(reader)
    return CallExpression(function, arguments)


def _read_function(reader: LiteralReader) -> str:
    namespace = _read_name(reader)
    if namespace in ("await", "return"):
        namespace = _read_name(reader)
    if not reader.accept("."):
        reader.fail(f"A namespace and `.` must precede the name: {_CALL_SHAPE}")
    reader.skip_blanks()
    return f"{namespace}.{_read_name(reader)}"


def _read_name(reader: LiteralReader) -> str:
    word = reader.read_identifier()
    if word is None:
        reader.fail(f"A name is missing here: {_CALL_SHAPE}")
    reader.skip_blanks()
    return word


def _read_arguments(reader: LiteralReader) -> dict[str, Value]:
    if not reader.accept("("):
        reader.fail(f"`(` must follow the name: {_CALL_SHAPE}")
    reader.skip_blanks()
    if reader.accept(")"):
        return {}
    if reader.peek() != "{":
        reader.fail(f"The argument must be one object: {_CALL_SHAPE}")
    arguments = reader.read_object()
    reader.skip_blanks()
    if not reader.accept(")"):
        reader.fail(f"`)` must follow the one object: {_CALL_SHAPE}")
    return arguments


def _read_json_call(reader: LiteralReader) -> CallExpression:
    body = reader.read_object()
    _expect_end(reader)
    name, arguments = body.get("name"), body.get("arguments", {})
    if not isinstance(name, str) or not name:
        reader.fail('The object must have a "name" that is a string', 0)
    if not isinstance(arguments, dict):
        reader.fail('The "arguments" must be an object', 0)
    return CallExpression(name, arguments)


def _expect_end(reader: LiteralReader) -> None:
    reader.skip_blanks()
    if reader.peek():
        reader.fail("Nothing may follow the call: send every call in its own tool_call")
