"""How to reach one configured MCP server, with all references filled in."""

import hashlib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

DEFAULT_START_TIMEOUT = 30.0
DEFAULT_CALL_TIMEOUT = 120.0
PASSED_IN = "the client"  # the origin of an entry that a client passed in
ToolSwitches = tuple[tuple[str, bool], ...]


class OAuthEntry(msgspec.Struct, frozen=True):
    """How to log in to a remote server; without a client id, Ostler registers itself."""

    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    redirect_port: int = 0


class ServerEntry(msgspec.Struct, frozen=True):
    """A configured server. `command` starts a local one, `url` addresses a remote one.

    `env` is the complete environment of a local server, `secrets` are values that must not appear in logs. `problem`
    says why the entry cannot be used. `origin` is the file that configures it. With `sandbox`, a local server can write
    only to `workspace` and a temporary folder, which is also its working directory if `cwd` is empty, and read
    `readable` paths in home directories. `oauth` is None if Ostler must not log in to a remote server.
    """

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = "."
    url: str = ""
    headers: Mapping[str, str] = {}
    start_timeout: float = DEFAULT_START_TIMEOUT
    call_timeout: float = DEFAULT_CALL_TIMEOUT
    required: bool = False
    enabled: bool = True
    tools: ToolSwitches = ()
    secrets: tuple[str, ...] = ()
    problem: str = ""
    origin: str = ""
    settings_digest: str = ""
    sandbox: bool = False
    network: bool = False
    workspace: str = ""
    oauth: OAuthEntry | None = None
    readable: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The command or URL, for people."""
        return self.url or " ".join(self.command)

    @property
    def confinement(self) -> str:
        """Whether a local server runs in the sandbox, for people; empty for a remote one."""
        return "" if self.url else confinement(self.sandbox, self.network)

    @property
    def is_passed_in(self) -> bool:
        """Whether a client such as an editor passed it in."""
        return self.origin == PASSED_IN

    @property
    def has_authorization(self) -> bool:
        """Whether the entry itself has an Authorization header."""
        return any(name.lower() == "authorization" for name in self.headers)

    @property
    def digest(self) -> str:
        """A digest of the configuration: what was cached or approved is valid only for the same one."""
        parts = [self.name, *self.command, self.url, self.cwd, self.settings_digest]
        if self.sandbox:
            parts.append(self.confinement)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def allows_tool(self, tool: str) -> bool:
        """Return whether the entry's switches allow a tool of the server; the last match decides."""
        return next((enabled for glob, enabled in reversed(self.tools) if fnmatchcase(tool, glob)), True)


def confinement(sandbox: bool, network: bool) -> str:
    """Return where a local server runs, for people."""
    if not sandbox:
        return "outside the sandbox, with your rights"
    return f"in the sandbox, {'with' if network else 'without'} network access"


def read_switches(value: Mapping[str, bool] | Sequence[str] | None) -> ToolSwitches:
    """Return the switches of a `tools` setting: names with true or false, or a list of the only tools."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(value.items())
    return (("*", False), *((name, True) for name in value))
