"""Whether this machine runs the tools of the session, or another one whose work this client watches."""

import asyncio
from collections.abc import Callable, Collection, Iterable

from ostler.backends.remote.plan import RemotePlan
from ostler.backends.remote.stream import ServerStream
from ostler.core.errors import BackendError
from ostler.core.events import Event, Notice
from ostler.core.tools import ToolSpec
from ostler.text.sanitise import escape_to_one_line
from ostler.wire.client_frames import Hello
from ostler.wire.frames_shared import (
    PROTOCOL_VERSION,
    HostInfo,
    ManifestTool,
    RemoteWorkspace,
    ResumePoint,
    ToolManifest,
)
from ostler.wire.manifest_rules import MAX_DESCRIPTION, MAX_TOOLS, ManifestError, check_tool
from ostler.wire.server_frames import HostStatus, SessionCreated

TAKE_SECONDS = 20.0
FEATURES = ("events", "queue", "approvals", "host", "manifest", "tool.cancel", "changes")
TAKE_HINT = "/take-tools runs them on this machine"
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


class ToolRole:
    """The role of this client in the session: tool host, or viewer of the one that is connected elsewhere.

    A client that the server does not accept as tool host becomes a viewer, until its user takes the tools.
    """

    def __init__(
        self, plan: RemotePlan, me: HostInfo, server_tools: Collection[str], emit: Callable[[Event], None]
    ) -> None:
        """`server_tools` are those that run on the server."""
        self.is_viewer = False
        self.manifest = OwnManifest(lambda text: emit(Notice("warning", text)))
        self._became_host = asyncio.Event()
        self._plan = plan
        self._missing = plan.server_only.difference(server_tools)
        self._emit = emit
        self._takes = plan.takes_tools
        self.me = self._host = me
        self._is_host_connected = True
        self._was_host = False
        self._reported = ""  # the last notice

    def tool_names(self) -> frozenset[str]:
        """The tools that the server may call here."""
        return frozenset() if self.is_viewer else frozenset(tool.name for tool in self.manifest.sent.tools)

    @property
    def host_name(self) -> str:
        """The machine that runs the tools, for people."""
        return escape_to_one_line((self._host.name or self._host.id)[:100]) or "another client"

    def describe(self) -> str:
        """Say where the tools run."""
        if not self.is_viewer:
            return "this machine"
        return self.host_name if self._is_host_connected else f"{self.host_name} (not connected)"

    def make_hello(
        self, root: str, resume: ResumePoint | None, workspace: RemoteWorkspace | None, options: dict[str, str]
    ) -> Hello:
        plan = self._plan
        manifest = None if self.is_viewer else self.manifest
        if manifest:
            manifest.update(self._specs())
        return Hello(
            plan.version,
            manifest.sent if manifest else None,
            root,
            PROTOCOL_VERSION,
            FEATURES,
            resume,
            self.me,
            self._takes,
            workspace if manifest else None,
            options,
        )

    def update_manifest(self) -> bool:
        """Return whether the tools changed, so that the server needs the new ones."""
        return not self.is_viewer and self.manifest.update(self._specs())

    def _specs(self) -> tuple[ToolSpec, ...]:
        return tuple(spec for spec in self._plan.tools() if spec.name not in self._missing)

    def become_viewer(self) -> bool:
        """Give up the tools, because another client runs them. Return False if this client had none."""
        if self.is_viewer:
            return False
        self.is_viewer, self._takes = True, False
        self._became_host.clear()
        return True

    async def take_tools(self, stream: ServerStream) -> bool:
        """Run the tools on this machine from now on. Raises `BackendError`."""
        if self.is_viewer:
            if not stream.is_connected:
                raise BackendError("the server is not connected now", code="disconnected")
            self.is_viewer, self._takes = False, True
            stream.reconnect()
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                await self._became_host.wait()
        except TimeoutError:
            raise BackendError("the server did not answer", code="timeout") from None
        return True

    def on_connected(self, created: SessionCreated) -> None:
        self._host, self._is_host_connected = created.host, created.host_connected
        if self.is_viewer:
            self._tell()
            return
        self._takes, self._was_host, self._reported = False, True, ""
        self._became_host.set()

    def on_status(self, status: HostStatus) -> None:
        """Note which machine runs the tools, and whether it is connected; or that calls of an earlier one wait."""
        if status.connected or status.host.id == self._host.id:
            self._host, self._is_host_connected = status.host, status.connected
            if self.is_viewer:
                self._tell()
        elif status.waiting_calls:
            name = escape_to_one_line((status.host.name or status.host.id)[:100])
            self._emit(Notice("warning", f"{name} is not connected; {status.waiting_calls} of its calls wait"))

    def _tell(self) -> None:
        """Report where the tools run, unless the last notice said the same."""
        text = self.describe()
        if text == self._reported:
            return
        self._reported = text
        if not self._is_host_connected:
            text = f"{self.host_name} runs the tools of this session and is not connected; {TAKE_HINT}"
            self._emit(Notice("warning", text))
        elif self._was_host:
            self._was_host = False
            text = f"{self.host_name} runs the tools of this session now; you can go on watching it, send prompts"
            self._emit(Notice("warning", f"{text} and cancel; {TAKE_HINT} again"))
        else:
            text = f"{self.host_name} runs the tools of this session; you can watch it, send prompts and cancel"
            self._emit(Notice("info", f"{text}; {TAKE_HINT}"))
