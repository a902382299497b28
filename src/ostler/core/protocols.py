"""The protocols between packages: backend, tool host, workspace, journal, session, frontend."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from ostler.core.commands import BackgroundJobs, CommandRequest, CommandResult
from ostler.core.display import Display
from ostler.core.events import Envelope, Event, ToolStarted, TurnEnded
from ostler.core.permission import Decision, Permission, Question, QuestionReply, Rule
from ostler.core.prompt import Prompt
from ostler.core.session_view import Records, SessionView
from ostler.core.sessions import (
    OpenSessionRequest,
    SessionChange,
    SessionInfo,
    SessionQuery,
    SessionStart,
    SessionSummary,
    TurnEndReason,
)
from ostler.core.tools import ChildTask, ToolCall, ToolResult, ToolSpec

P = TypeVar("P")


class BackendContext(Protocol):
    """What a session offers its backend, from `open` to `aclose`. All side effects go through it."""

    def emit(self, event: Event) -> None:
        """Publish an event; never blocks."""

    def events(self) -> Sequence[Event]:
        """Return the persisted events so far, without reverted ones."""

    def records(self) -> "Records":
        """Return the same events as numbered records; the model's history is built from them."""

    def remote_turn_started(self, prompt: Prompt) -> None:
        """Report that the remote side started a turn; the session then calls `run_turn(None)`."""

    def unsent_notes(self, *, is_new_history: bool = False) -> Sequence[str]:
        """Return what to send before a prompt: instructions, reverts, reminders, the user's commands.

        Each is returned once, or again if the turn fails.

        With `is_new_history` the remote side has no earlier messages, so the instructions are returned again.
        """

    async def record_start(self, event: ToolStarted, *, files_only: bool = False) -> None:
        """Record that a call starts. On return the record is on disk and the checkpoint is taken (`Undo.begin`)."""

    async def run_tool(self, call: ToolCall) -> ToolResult:
        """Run a call through the tool host, once per call id. Raises nothing except `CancelledError`."""

    async def decide(self, permission: Permission) -> Decision:
        """Ask the policy, then the user if the policy requires approval."""

    def may_read(self, call_id: str, path: str) -> bool:
        """Return whether the rules let a call show the content of a file; with an empty path, of every file."""

    async def ask(self, question: Question) -> QuestionReply:
        """Ask the user a question (elicitation). Declined in non-interactive sessions. Sets the question's id."""

    async def spawn(self, task: ChildTask) -> ToolResult:
        """Run a task in a child session, whose rules can only restrict permissions."""


class Backend(Protocol):
    """Produces the replies of a session: the engine with a model, or a remote agent."""

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo: ...

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        """Run one turn. With None, follow the turn that the remote side started.

        After a takeover (`SessionInfo.can_take_over`), None also means: continue the recorded turn and its open calls.
        """

    async def apply(self, change: SessionChange) -> bool:
        """Apply a change (steer, set an option, compact, revert). Return False if it is not supported."""

    async def aclose(self) -> None: ...


class ToolRunner(Protocol):
    """Runs tool calls: the local tool host, or a server's connection to its client's tools."""

    async def open(self, context: BackendContext) -> None:
        """Called before the backend is opened. Anything that lives as long as the session starts here."""

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools that can be called now; the list may change between two calls."""

    async def run(self, call: ToolCall, context: BackendContext) -> ToolResult:
        """Run a call. When cancelled, stop it, also on another machine, and return; the session's wait is limited."""

    async def aclose(self) -> None:
        """Stop everything, including background processes, which outlive a turn."""


@runtime_checkable
class HasChildTools(ToolRunner, Protocol):
    """A `ToolRunner` of a client elsewhere, which also runs the calls of child sessions."""

    def for_child(self, is_offered: Callable[[str], bool]) -> ToolRunner:
        """Return the tools of a child session that `is_offered` selects."""


class ResolvedPath(msgspec.Struct, frozen=True):
    """A resolved path. `display_path` is what users and rules see: relative inside the workspace, else absolute."""

    display_path: str
    absolute: str
    in_workspace: bool
    exists: bool


class TextFile(msgspec.Struct, frozen=True):
    """A decoded text file. `text` keeps the file's newlines; `version` changes when its bytes change."""

    path: str
    text: str
    encoding: str
    newline: Literal["\n", "\r\n", "\r", "mixed", ""]
    bom: bool
    size: int
    version: str


class WriteResult(msgspec.Struct, frozen=True):
    """The effect of a write. `source` is the old path of a renamed file."""

    path: str
    operation: Literal["created", "updated", "unchanged", "deleted", "renamed"]
    size: int
    additions: int
    deletions: int
    diff: str
    diff_truncated: bool = False
    source: str = ""


class FileChange(msgspec.Struct, frozen=True):
    """A requested change of one file.

    `text` is the exact new content, or None to keep it. `base_version` is the version the change was computed from,
    empty for a new file. A new file takes its encoding and mode from `template_path`.
    """

    path: str
    text: str | None = None
    base_version: str = ""
    new_path: str = ""
    delete: bool = False
    executable: bool | None = None
    template_path: str = ""


class DirectoryEntry(msgspec.Struct, frozen=True):
    """An entry of a directory."""

    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int = 0


class PathInfo(msgspec.Struct, frozen=True):
    """Metadata of a path. A symlink as its last component is followed."""

    path: str
    kind: Literal["file", "directory", "link", "other"]
    size: int
    mode: int
    modified: float


class Workspace(Protocol):
    """The files and commands that tools can use. Paths that cannot be used raise `PathError`."""

    @property
    def root(self) -> str: ...

    def resolve(self, path: str) -> ResolvedPath: ...

    async def read_text(self, path: str) -> TextFile: ...

    async def read_bytes(self, path: str, limit: int) -> bytes: ...

    async def write_text(self, path: str, text: str) -> WriteResult:
        """Replace a file atomically, keeping its encoding. Raises if it changed since it was last read here."""

    async def read_for_edit(self, path: str) -> TextFile:
        """Read a file in order to edit it. Raises if it changed since it was last read here."""

    async def apply(self, changes: Sequence[FileChange], *, dry_run: bool = False) -> Sequence[WriteResult]:
        """Apply all changes or none. A dry run validates them and returns what they would do."""

    async def can_commands_write(self) -> bool:
        """Return whether a command could change files of the workspace."""

    def exclusive(self) -> AbstractAsyncContextManager[None]:
        """Hold the workspace's write lock, so that reads and writes form one operation."""

    async def entries(self, path: str) -> Sequence[DirectoryEntry]: ...

    async def stat(self, path: str) -> PathInfo: ...

    def iter_files(self, path: str = ".", *, hidden: bool = False, folders: bool = False) -> Iterator[str]:
        """Yield files below a directory, sorted, except ignored ones; on request also `folder/` and `link//`."""

    async def append_bytes(self, path: str, data: bytes) -> int:
        """Append bytes, sync them to disk and return the new size."""

    async def make_directory(self, path: str) -> bool:
        """Create a directory and its parents. Return False if it existed."""

    async def run(self, request: CommandRequest) -> CommandResult: ...

    async def is_sandboxed(self) -> bool:
        """Return whether commands run in the operating system's sandbox."""

    async def has_sandbox(self) -> bool:
        """Return whether a command can run in a sandbox with the workspace read-only, also if others run elsewhere."""

    def is_read_only_command(self, command: str) -> bool:
        """Return whether a command always runs with the workspace read-only, if it runs in the sandbox."""

    @property
    def jobs(self) -> BackgroundJobs:
        """Background commands. Raises `ToolError` where they are not supported."""


class ToolContext(Protocol):
    """The services that a running tool can use. It cannot decide permissions."""

    @property
    def call_id(self) -> str: ...

    @property
    def workspace(self) -> Workspace: ...

    @property
    def read_only(self) -> bool:
        """Whether a command may run only with the workspace read-only."""

    def progress(self, display: Display) -> None: ...

    def persist(self, event: Event) -> None: ...

    def events(self) -> Sequence[Event]: ...

    def may_read(self, path: str) -> bool:
        """Return whether the rules let this call show the content of a file."""

    async def ask(self, question: Question) -> QuestionReply:
        """Ask the user for input that the tool needs; never for permission."""

    async def spawn(self, task: ChildTask) -> ToolResult: ...


class Tool(Protocol[P]):
    """A built-in, protocol or MCP tool."""

    @property
    def spec(self) -> ToolSpec: ...

    def parse(self, arguments: Mapping[str, Any]) -> P:
        """Validate the arguments. Raises a typed error that says how to fix the call."""

    async def permission(self, params: P, workspace: Workspace) -> Permission:
        """Return what the call needs, as data; the tool itself never asks."""

    async def run(self, params: P, context: ToolContext) -> ToolResult: ...


class ToolSource(Protocol):
    """Provides tools that come and go to the tool host, from `open` to `aclose`, such as those of an MCP server."""

    def open(self, context: BackendContext, on_change: Callable[[], None]) -> None:
        """Start the source in a task of its own, and return at once: a session does not wait for its servers.

        The source calls `on_change` whenever `tools` has changed, and emits `ServerStateChanged` on the context.
        """

    def tools(self) -> Mapping[str, Tool[Any]]:
        """Return the tools that can be called now, by the names under which they are called."""

    async def aclose(self) -> None:
        """Stop the source; it may not have been opened. Neither the context nor `on_change` is used afterwards."""


class Journal(Protocol):
    """The stored records of one session. `damage` describes what was found broken on opening."""

    @property
    def session_id(self) -> str: ...

    @property
    def damage(self) -> Sequence[str]: ...

    def records(self) -> Records:
        """Return all records; the sequence grows with `append`."""

    def append(self, envelope: Envelope) -> None: ...

    def sync(self) -> None:
        """Write everything appended to disk before returning."""

    def close(self) -> None:
        """Close the journal; nothing can be appended afterwards."""

    def drop(self) -> None:
        """Close it after a failed opening, and delete it if it was created for that opening."""


class StandingRules(Protocol):
    """The permission rules that the user set for all sessions of a project."""

    def rules(self) -> Sequence[Rule]: ...

    def add(self, rule: Rule) -> None: ...

    def revoke(self, rule: Rule) -> bool:
        """Remove a rule. Return whether it existed."""


class Turn(Protocol):
    """A running turn, as frontends use it."""

    @property
    def id(self) -> str: ...

    def cancel(self, reason: TurnEndReason = "cancelled") -> None: ...

    async def wait(self) -> TurnEnded: ...


class EventSubscription(Protocol):
    """A stream of events for one subscriber. A slow one gets a snapshot instead of missed transient events."""

    def __aiter__(self) -> AsyncIterator[Envelope]: ...

    async def __anext__(self) -> Envelope: ...

    def close(self) -> None:
        """End the subscription after the events already queued; every subscriber must call this."""


class Session(Protocol):
    """A session as frontends use it."""

    @property
    def id(self) -> str: ...

    @property
    def info(self) -> SessionInfo: ...

    @property
    def state(self) -> SessionView: ...

    @property
    def opened_after_seq(self) -> int:
        """Number of the last event from before this session was opened."""

    @property
    def last_seq(self) -> int:
        """Number of the last persisted event."""

    @property
    def turn(self) -> Turn | None:
        """The running turn, also if the remote side started it."""

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools that can be called now."""

    def records(self) -> Records:
        """Return the persisted events so far, without reverted ones."""

    def start(self, prompt: Prompt) -> Turn: ...

    async def call(self, call: ToolCall) -> ToolResult: ...
    async def apply(self, change: SessionChange) -> bool: ...

    def answer(self, ask_id: str, answer: Decision | QuestionReply) -> bool:
        """Answer an open request as the user. Return False if it was already answered."""

    def subscribe(self, since: int = 0) -> EventSubscription:
        """Stream the persisted events after `since`, the current state, then new events."""

    async def wait_saved(self) -> None: ...  # until all events so far are on disk; raises `JournalError`
    async def aclose(self) -> None: ...

    async def release(self) -> None:
        """Close the session without ending its running turn, so that another process can continue the turn."""


class SessionManager(Protocol):
    """Opens, lists and deletes sessions for a frontend."""

    async def open(
        self, request: OpenSessionRequest, *, tools: ToolRunner | None = None, workspace: Workspace | None = None
    ) -> Session:
        """Open a session, optionally with a server client's tools or an editor's workspace."""

    async def list(self, query: SessionQuery) -> Sequence[SessionSummary]: ...

    async def delete(self, session_id: str) -> None: ...  # raises `UsageError` if there is no such id


class Frontend(Protocol):
    """A user interface: line client, headless run, editor, server. `run` returns the exit status."""

    async def run(self, manager: SessionManager) -> int: ...
