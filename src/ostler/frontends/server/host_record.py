"""What the store keeps about a session besides its log, for a process that takes it over."""

import os

import msgspec

from ostler.wire.client_frames import Hello
from ostler.wire.frames_shared import HostInfo, ManifestTool, RemoteWorkspace


class HostRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tool host of a session, the options it was created with, and the identity of its log."""

    epoch: str
    root: str = ""
    host: HostInfo = HostInfo()
    tools: tuple[ManifestTool, ...] = ()
    workspace: RemoteWorkspace | None = None
    options: dict[str, str] = {}
    client_version: str = ""

    @classmethod
    def new(cls, root: str = "") -> "HostRecord":
        return cls(os.urandom(8).hex(), root[:4096])

    @classmethod
    def decode(cls, data: bytes) -> "HostRecord":
        """Decode a stored record; a session that another program made has none yet."""
        return msgspec.json.decode(data, type=cls) if data else cls.new()

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @property
    def answers_checks(self) -> bool:
        """Whether the host says which checks the edits of a turn need."""
        return self.workspace is not None and self.workspace.checks

    def with_hello(self, hello: Hello) -> "HostRecord":
        """Return the record with what a tool host announced."""
        assert hello.tool_manifest is not None
        return msgspec.structs.replace(
            self,
            root=hello.workspace_root[:4096],
            host=HostInfo(hello.host.id[:128], hello.host.name[:128]),
            tools=hello.tool_manifest.tools,
            workspace=hello.workspace,
            client_version=hello.client_version[:64],
        )
