"""Which tools a manifest may have. The client leaves out the others; the server refuses a manifest with one."""

import re
from typing import Any

import msgspec

from ostler.wire.frames_shared import ManifestTool
from ostler.wire.tool_schemas import SchemaError, check_schema

MAX_TOOLS = 256
MAX_BYTES = 1024 * 1024
MAX_SCHEMA_BYTES = 64 * 1024
MAX_DESCRIPTION = 16 * 1024
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ManifestError(ValueError):
    """A manifest that is refused; the message says why."""


def check_tool(tool: ManifestTool) -> int:
    """Return the size of a tool in bytes. Raises `ManifestError` if a manifest may not have it."""
    if not _NAME.fullmatch(tool.name):
        raise ManifestError(f"{tool.name[:80]!r} is not a usable tool name")
    if len(tool.description) > MAX_DESCRIPTION:
        raise ManifestError(f"the description of {tool.name} has more than {MAX_DESCRIPTION} characters")
    schema = object_schema(tool.input_schema)
    try:
        size = len(msgspec.json.encode(schema))
        if size > MAX_SCHEMA_BYTES:
            raise ManifestError(f"the schema of {tool.name} has more than {MAX_SCHEMA_BYTES} bytes")
        check_schema(schema)
    except (SchemaError, UnicodeEncodeError, RecursionError) as error:
        raise ManifestError(f"the schema of {tool.name} cannot be used: {error}") from None
    if schema["type"] != "object":
        raise ManifestError(f"the schema of {tool.name} cannot be used: it must be of type object")
    return size + len(tool.description.encode("utf-8", "replace"))


def object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments, which are always an object."""
    types = schema.get("type", "object")
    return (
        {**schema, "type": "object"} if isinstance(types, list) and "object" in types else {"type": "object", **schema}
    )
