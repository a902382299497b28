"""One call written as `Namespace.name({...})`, or as a JSON object, read as data; nothing is evaluated."""

import msgspec

from ostler.xnl.errors import CallError
from ostler.xnl.literals import LiteralReader
from ostler.xnl.tree import Value

MAX_LENGTH = 4_000_000

_SHAPE = "write one call as Namespace.name({ key: value })"


class Call(msgspec.Struct, frozen=True):
    function: str
    arguments: dict[str, Value]


def parse_call(code: str) -> Call:
    """Read one call; raises CallError for anything that is not `Namespace.name({...})` with literal values."""
    if len(code) > MAX_LENGTH:
        raise CallError(f"Send less at once: a call may have at most {MAX_LENGTH} characters")
    reader = LiteralReader(code)
    reader.skip()
    if reader.peek() == "{":
        return _json_call(reader)
    function = _function(reader)
    arguments = _arguments(reader)
    reader.skip()
    reader.take(";")
    _expect_end(reader)
    return Call(function, arguments)


def _function(reader: LiteralReader) -> str:
    namespace = _part(reader)
    if namespace in ("await", "return"):
        namespace = _part(reader)
    if not reader.take("."):
        reader.fail(f"A namespace and `.` must stand before the name: {_SHAPE}")
    reader.skip()
    return f"{namespace}.{_part(reader)}"


def _part(reader: LiteralReader) -> str:
    word = reader.identifier()
    if word is None:
        reader.fail(f"A name must stand here: {_SHAPE}")
    reader.skip()
    return word


def _arguments(reader: LiteralReader) -> dict[str, Value]:
    if not reader.take("("):
        reader.fail(f"`(` must follow the name: {_SHAPE}")
    reader.skip()
    if reader.take(")"):
        return {}
    if reader.peek() != "{":
        reader.fail(f"The argument must be one object: {_SHAPE}")
    arguments = reader.object()
    reader.skip()
    if not reader.take(")"):
        reader.fail(f"`)` must follow the one object: {_SHAPE}")
    return arguments


def _json_call(reader: LiteralReader) -> Call:
    body = reader.object()
    _expect_end(reader)
    name, arguments = body.get("name"), body.get("arguments", {})
    if not isinstance(name, str) or not name:
        reader.fail('The object must have a "name" that is a string', 0)
    if not isinstance(arguments, dict):
        reader.fail('The "arguments" must be an object', 0)
    return Call(name, arguments)


def _expect_end(reader: LiteralReader) -> None:
    reader.skip()
    if reader.peek():
        reader.fail("Nothing may follow the call: send every call in its own tool_call")
