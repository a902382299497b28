"""Checks the manifest of a tool host and turns it into tool specs."""

from ostler.core.tools import ToolSpec
from ostler.text.sanitise import sanitise
from ostler.wire.frames_shared import ManifestTool, ToolManifest
from ostler.wire.manifest_rules import MAX_BYTES, MAX_TOOLS, ManifestError, check_tool, object_schema


def check_manifest(manifest: ToolManifest) -> dict[str, ToolSpec]:
    """Return the tools by name. Raises `ManifestError`."""
    if len(manifest.tools) > MAX_TOOLS:
        raise ManifestError(f"the manifest has {len(manifest.tools)} tools; at most {MAX_TOOLS} are possible")
    specs: dict[str, ToolSpec] = {}
    size = 0
    for tool in manifest.tools:
        if tool.name in specs:
            raise ManifestError(f"the manifest has two tools named {tool.name}")
        size += check_tool(tool)
        if size > MAX_BYTES:
            raise ManifestError(f"the manifest has more than {MAX_BYTES} bytes")
        specs[tool.name] = _to_spec(tool)
    return specs


def _to_spec(tool: ManifestTool) -> ToolSpec:
    description, schema = sanitise(tool.description), object_schema(tool.input_schema)
    return ToolSpec(
        tool.name, tool.kind, description, schema, tool.effects, tool.reach, tool.runs_in, tool.namespace[:64]
    )
