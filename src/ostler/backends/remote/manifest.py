"""Makes the manifest: the tools of this machine as the server gets them."""

from collections.abc import Callable, Iterable

from ostler.core.tools import ToolSpec
from ostler.wire.frames_shared import ManifestTool, ToolManifest
from ostler.wire.manifest_rules import MAX_DESCRIPTION, MAX_TOOLS, ManifestError, check_tool

_MAX_TOTAL = 900_000
_REST_OF_A_TOOL = 300  # bytes for its name, kind and place


class OwnManifest:
    """The tools of this machine as they were last sent. Reports each tool that the server does not accept once."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.sent = ToolManifest(())
        self._specs: tuple[ToolSpec, ...] = ()
        self._left_out: dict[str, str] = {}
        self._report = report

    def update(self, specs: tuple[ToolSpec, ...]) -> bool:
        """Return whether the manifest changed."""
        if specs == self._specs:
            return False
        manifest, left_out = make_manifest(specs)
        for name in left_out.keys() - self._left_out.keys():
            self._report(f"the server gets no tool {name}: {left_out[name]}")
        self._specs, self._left_out = specs, left_out
        previous, self.sent = self.sent, manifest
        return manifest != previous


def make_manifest(specs: Iterable[ToolSpec]) -> tuple[ToolManifest, dict[str, str]]:
    """Return the manifest, and for each tool that it may not have the reason."""
    tools: dict[str, ManifestTool] = {}
    left_out: dict[str, str] = {}
    left = _MAX_TOTAL
    for spec in specs:
        tool = _to_tool(spec)
        try:
            size = check_tool(tool) + _REST_OF_A_TOOL
        except ManifestError as error:
            left_out[spec.name] = str(error)
            continue
        if size > left or len(tools) >= MAX_TOOLS:
            left_out[spec.name] = "there are too many tools for a server"
        elif spec.name not in tools:
            tools[spec.name] = tool
            left -= size
    return ToolManifest(tuple(tools.values())), left_out


def _to_tool(spec: ToolSpec) -> ManifestTool:
    description = spec.description
    if len(description.encode("utf-8", "replace")) > MAX_DESCRIPTION:
        description = description.encode("utf-8", "replace")[: MAX_DESCRIPTION - 10].decode("utf-8", "ignore") + " …"
    return ManifestTool(
        spec.name, description, spec.schema, spec.kind, spec.effects, spec.reach, spec.runs_in, spec.namespace
    )
