"""Checks the manifest of a tool host and turns it into tool specs."""

import re

import msgspec

from ostler.core.tools import ToolSpec
from ostler.frontends.server.schema_check import SchemaError, check_schema
from ostler.text.sanitise import sanitise
from ostler.wire.frames_shared import ManifestTool, ToolManifest

MAX_TOOLS = 256
MAX_BYTES = 1024 * 1024
MAX_SCHEMA_BYTES = 64 * 1024
MAX_DESCRIPTION = 16 * 1024
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ManifestError(ValueError):
    """A manifest that is refused; the message says why."""


def check_manifest(manifest: ToolManifest) -> dict[str, ToolSpec]:
    """Return the tools by name. Raises `ManifestError`."""
    if len(manifest.tools) > MAX_TOOLS:
        raise ManifestError(f"the manifest has {len(manifest.tools)} tools; at most {MAX_TOOLS} are possible")
    specs: dict[str, ToolSpec] = {}
    size = 0
    for tool in manifest.tools:
        if tool.name in specs:
            raise ManifestError(f"the manifest has two tools named {tool.name}")
        specs[tool.name], tool_size = _check_tool(tool)
        size += tool_size
        if size > MAX_BYTES:
            raise ManifestError(f"the manifest has more than {MAX_BYTES} bytes")
    return specs


def _check_tool(tool: ManifestTool) -> tuple[ToolSpec, int]:
    if not _NAME.fullmatch(tool.name):
        raise ManifestError(f"{tool.name[:80]!r} is not a usable tool name")
    if len(tool.description) > MAX_DESCRIPTION:
        raise ManifestError(f"the description of {tool.name} has more than {MAX_DESCRIPTION} characters")
    schema = {"type": "object", **tool.input_schema}
    try:
        size = len(msgspec.json.encode(schema))
        if size > MAX_SCHEMA_BYTES:
            raise ManifestError(f"the schema of {tool.name} has more than {MAX_SCHEMA_BYTES} bytes")
        check_schema(schema)
    except (SchemaError, UnicodeEncodeError, RecursionError) as error:
        raise ManifestError(f"the schema of {tool.name} cannot be used: {error}") from None
    if schema["type"] != "object":
        raise ManifestError(f"the schema of {tool.name} cannot be used: it must be of type object")
    description = sanitise(tool.description)
    spec = ToolSpec(
        tool.name, tool.kind, description, schema, tool.effects, tool.reach, tool.runs_in, tool.namespace[:64]
    )
    return spec, size + len(description)
