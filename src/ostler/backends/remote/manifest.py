"""Makes the manifest: the tools of this machine as the server gets them."""

import re
from collections.abc import Iterable

import msgspec

from ostler.core.tools import ToolSpec
from ostler.wire.frames_shared import ManifestTool, ToolManifest

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MAX_SCHEMA = 64 * 1024
_MAX_DESCRIPTION = 16 * 1024
_MAX_TOOLS = 256
_MAX_TOTAL = 900_000


def make_manifest(specs: Iterable[ToolSpec]) -> ToolManifest:
    """Return the manifest. Tools that the protocol does not allow are left out: names, sizes, number."""
    tools: dict[str, ManifestTool] = {}
    left = _MAX_TOTAL
    for spec in specs:
        tool = _to_tool(spec)
        size = len(msgspec.json.encode(tool))
        is_valid = _NAME.fullmatch(spec.name) and len(msgspec.json.encode(spec.schema)) <= _MAX_SCHEMA
        if is_valid and size <= left and len(tools) < _MAX_TOOLS and spec.name not in tools:
            tools[spec.name] = tool
            left -= size
    return ToolManifest(tuple(tools.values()))


def _to_tool(spec: ToolSpec) -> ManifestTool:
    description = spec.description
    if len(description.encode("utf-8", "replace")) > _MAX_DESCRIPTION:
        description = description.encode("utf-8", "replace")[: _MAX_DESCRIPTION - 10].decode("utf-8", "ignore") + " …"
    return ManifestTool(
        spec.name, description, spec.schema, spec.kind, spec.effects, spec.reach, spec.runs_in, spec.namespace
    )
