"""The seams of the house: whoever thinks, acts, remembers or shows is behind one of these."""

from collections.abc import AsyncIterator, Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from ostler.vocabulary.display import Display
from ostler.vocabulary.events import Envelope, Event, ToolStarted, TurnEnded
from ostler.vocabulary.permission import Decision, Permission, Question, Reply, Rule
from ostler.vocabulary.prompt import Prompt
from ostler.vocabulary.sessions import Change, EndReason, Opening, Query, SessionInfo, SessionStart, SessionSummary
from ostler.vocabulary.tools import ChildTask, ToolCall, ToolResult, ToolSpec
from ostler.vocabulary.view import SessionView

P = TypeVar("P")


class Stage(Protocol):
    """All that a backend may do to the world, from open to aclose."""

    def emit(self, event: Event) -> None:
        """Publish; never blocks."""

    def past(self) -> Sequence[Event]:
        """The kept events so far that count: what was reverted is left out."""

    def records(self) -> "Past":
        """The same with their numbers; history is a fold over them."""

    def wake(self, prompt: Prompt) -> None:
        """The far side began a turn: join it with `run_turn(None)`."""

    async def intend(self, event: ToolStarted) -> None:
        """Emit that a call begins; when this returns, the intent is on disk and what it may change is kept."""

    async def run_tool(self, call: ToolCall) -> ToolResult:
        """Through the one door. Never raises, save cancellation; runs once per call id."""

    async def decide(self, permission: Permission) -> Decision:
        """The policy, then a person."""

    async def ask(self, question: Question) -> Reply:
        """Elicitation; declined when nobody is home. Its id is given here."""

    async def spawn(self, task: ChildTask) -> ToolResult:
        """A child session; its rules only narrow."""


class Backend(Protocol):
    """Whoever thinks."""

    async def open(self, start: SessionStart, stage: Stage) -> SessionInfo: ...

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        """Play one turn; None joins the turn the far side plays."""

    async def apply(self, change: Change) -> bool:
        """Steer, set an option, compact, forget what was reverted; False when it cannot."""

    async def aclose(self) -> None: ...


class ToolRunner(Protocol):
    """Whoever acts: the one door on this machine, or the server's way to the client's."""

    async def open(self, stage: Stage) -> None:
        """Before the backend is; whoever lives as long as the session, as a server of tools does, begins here."""

    def specs(self) -> Sequence[ToolSpec]:
        """What can be called now; it may be another the next time."""

    async def run(self, call: ToolCall, stage: Stage) -> ToolResult: ...

    async def aclose(self) -> None:
        """Background processes end here, not with the turn."""


class Place(msgspec.Struct, frozen=True):
    """Where a path leads, told without touching what is there.

    `shown` is how a person and the rules see it: relative inside the workspace, absolute outside.
    """

    shown: str
    absolute: str
    inside: bool
    exists: bool


class TextFile(msgspec.Struct, frozen=True):
    """A text as it stands on disk, decoded, with all that is needed to write it back in its own form.

    `text` has every newline as it is in the file; `version` changes when the bytes do.
    """

    path: str
    text: str
    encoding: str
    newline: Literal["\n", "\r\n", "\r", "mixed", ""]
    bom: bool
    size: int
    version: str


class Written(msgspec.Struct, frozen=True):
    """What a write did; `source` is the old name of a renamed file."""

    path: str
    operation: Literal["created", "updated", "unchanged", "deleted", "renamed"]
    size: int
    additions: int
    deletions: int
    diff: str
    diff_cut: bool = False
    source: str = ""


class FileChange(msgspec.Struct, frozen=True):
    """What shall become of one file; a set of these happens together or not at all.

    `text` is what shall stand there to the letter, None to leave it; `base` is the version it was made from, empty for
    a file that is not there yet. `to` is a new name. `like` names the file whose encoding and mode a new file takes.
    """

    path: str
    text: str | None = None
    base: str = ""
    to: str = ""
    delete: bool = False
    executable: bool | None = None
    like: str = ""


class Entry(msgspec.Struct, frozen=True):
    """One entry of a directory."""

    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int = 0


class Stat(Protocol):
    """What is known of a path without reading it; a link at its end is followed."""

    @property
    def path(self) -> str: ...

    @property
    def kind(self) -> Literal["file", "directory", "link", "other"]: ...

    @property
    def size(self) -> int: ...

    @property
    def mode(self) -> int: ...

    @property
    def modified(self) -> float: ...


class Running(msgspec.Struct, frozen=True):
    """How a command is to be run; `on_output` hears what arrives meanwhile, `network` lets it out of the machine."""

    command: str
    timeout: float = 120.0
    cwd: str = ""
    env: dict[str, str] = {}
    on_output: Callable[[str], None] | None = None
    network: bool = False


class Ran(msgspec.Struct, frozen=True):
    """What a command did. `exit_code` is None when it was killed; `spill` names the whole output if it was cut."""

    stdout: str
    stderr: str
    exit_code: int | None
    seconds: float
    timed_out: bool = False
    cut: bool = False
    spill: str = ""


class Job(msgspec.Struct, frozen=True):
    """How a background command stands; `log` names the file with all it printed, up to a cap."""

    id: str
    command: str
    state: Literal["running", "exited", "killed"]
    exit_code: int | None
    seconds: float
    log: str


class Jobs(Protocol):
    """Commands that go on while other things happen; all end with the session."""

    async def start(self, running: Running) -> str: ...

    def list(self) -> Sequence[Job]: ...

    async def read(self, job_id: str, wait: float) -> tuple[str, Job]:
        """What it printed since it was last read; with `wait`, after so many seconds or its end."""

    async def stop(self, job_id: str) -> Job: ...


class Ground(Protocol):
    """The workspace as tools see it: every file and every command goes through here, and refusals are `PathRefused`."""

    @property
    def root(self) -> str: ...

    def place(self, path: str) -> Place: ...

    async def read_text(self, path: str) -> TextFile: ...

    async def read_bytes(self, path: str, limit: int) -> bytes: ...

    async def write_text(self, path: str, text: str) -> Written:
        """Whole and at once, in the file's own form; refused when the file changed since this ground last read it."""

    async def read_to_change(self, path: str) -> TextFile:
        """A text to be changed: refused when it changed since this ground last read it, and not counted as read."""

    async def apply(self, changes: Sequence[FileChange], *, dry_run: bool = False) -> Sequence[Written]:
        """All changes or none; a dry run refuses what would be refused and tells what would be done."""

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Reads and writes as one: nobody else uses this ground meanwhile."""

    async def entries(self, path: str) -> Sequence[Entry]: ...

    async def stat(self, path: str) -> Stat: ...

    def iter_files(self, path: str = ".", *, hidden: bool = False, folders: bool = False) -> Iterator[str]:
        """The files below a directory, sorted, without what git ignores; if asked, also `folder/` and `link//`."""

    async def append_bytes(self, path: str, data: bytes) -> int:
        """Bytes at the end of a file, on disk when this returns; the size it has then."""

    async def make_directory(self, path: str) -> bool:
        """A directory with its parents; False when it was there."""

    async def run(self, running: Running) -> Ran: ...

    async def confined(self) -> bool:
        """Whether the system's sandbox holds the commands that run here."""

    @property
    def jobs(self) -> Jobs:
        """Background commands; `ToolFailure` where there are none."""


class ToolContext(Protocol):
    """What a running tool sees; it cannot decide."""

    @property
    def call_id(self) -> str: ...

    @property
    def ground(self) -> Ground: ...

    def progress(self, display: Display) -> None: ...

    def keep(self, event: Event) -> None: ...

    def past(self) -> Sequence[Event]: ...

    async def ask(self, question: Question) -> Reply:
        """Something the person has to say or do before the tool can go on; never whether it may."""

    async def spawn(self, task: ChildTask) -> ToolResult: ...


class Tool(Protocol[P]):
    """A built-in, protocol or MCP tool."""

    @property
    def spec(self) -> ToolSpec: ...

    def parse(self, arguments: Mapping[str, Any]) -> P:
        """A typed error that says how to mend the call."""

    async def permission(self, params: P, ground: Ground) -> Permission:
        """Pure data; a tool never asks for itself."""

    async def run(self, params: P, context: ToolContext) -> ToolResult: ...


class Past(Protocol):
    """The records of a session in order; one is decoded when it is looked at, so ask for its kind first."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Envelope: ...

    def __iter__(self) -> Iterator[Envelope]: ...

    def kind(self, index: int) -> str:
        """The name of the event's type."""

    def of(self, kinds: Container[str]) -> Iterator[int]:
        """The indexes of the records of some kinds, in order."""

    def after(self, seq: int) -> int:
        """The index of the first record whose number is greater."""

    def result(self, call_id: str) -> ToolResult | None:
        """What came of a call, if it is over and still counts."""

    def result_seq(self, call_id: str) -> int | None:
        """The number of the record that tells what came of a call, whether it still counts or not."""


class Journal(Protocol):
    """What remembers one session; `damage` says in sentences what was found broken when it was opened."""

    @property
    def session_id(self) -> str: ...

    @property
    def damage(self) -> Sequence[str]: ...

    def past(self) -> Past:
        """All that was kept; it grows with `append`."""

    def append(self, envelope: Envelope) -> None: ...

    def sync(self) -> None:
        """What was appended is on disk when this returns."""

    def close(self) -> None:
        """Let go of it; nothing can be appended afterwards."""

    def drop(self) -> None:
        """Close it because the session could not be opened; one that was made for that is gone."""


class Undo(Protocol):
    """Keeps what a turn is about to change, so that it can be taken back."""

    async def begin(self, turn_id: str) -> Sequence[str]:
        """Keep the workspace as it is; what could not be taken back is named."""

    def living(self, turn_id: str) -> None:
        """A sign of life beside an effect: what changes after the last one, should the turn die, is not its work."""

    def resting(self, turn_id: str) -> None:
        """No effect is under way, so what the turn has done so far may be looked at; `living` says when one follows."""

    async def finish(self, turn_id: str) -> None: ...


class Grants(Protocol):
    """The standing rules a person gave for a project, over all its sessions."""

    def rules(self) -> Sequence[Rule]: ...

    def add(self, rule: Rule) -> None: ...

    def revoke(self, rule: Rule) -> bool:
        """Whether there was such a rule."""


class Turn(Protocol):
    """A turn under way, as a face holds it."""

    @property
    def id(self) -> str: ...

    def cancel(self, reason: EndReason = "cancelled") -> None: ...

    async def wait(self) -> TurnEnded: ...


class Reading(Protocol):
    """One reader's view of what happens; whoever reads too slowly misses fleeting events, and is told what is so."""

    def __aiter__(self) -> AsyncIterator[Envelope]: ...

    async def __anext__(self) -> Envelope: ...

    def close(self) -> None:
        """No more comes than waits already; a reader that is done with it must say so."""


class Session(Protocol):
    """What a face sees of a session."""

    @property
    def id(self) -> str: ...

    @property
    def info(self) -> SessionInfo: ...

    @property
    def state(self) -> SessionView: ...

    @property
    def opened_at(self) -> int:
        """The number of the last event before this opening: what a resumed session brings along ends there."""

    @property
    def turn(self) -> Turn | None:
        """The turn that runs, whoever began it."""

    def tools(self) -> Sequence[ToolSpec]:
        """What can be called in it now."""

    def records(self) -> Past:
        """The kept events so far that count."""

    def start(self, prompt: Prompt) -> Turn: ...

    async def call(self, call: ToolCall) -> ToolResult: ...

    async def apply(self, change: Change) -> bool: ...

    def settle(self, ask_id: str, answer: Decision | Reply) -> bool:
        """The first answer wins; False for a late one. Whoever looks through a face is a person, never the policy."""

    def subscribe(self, since: int = 0) -> Reading:
        """The kept events after `since`, what is so now, then everything as it happens."""

    async def aclose(self) -> None: ...


class House(Protocol):
    """What the composition root gives a face."""

    async def open(self, opening: Opening, *, tools: ToolRunner | None = None, ground: Ground | None = None) -> Session:
        """A session; a server hands in its client's tools, an editor its own ground."""

    async def list(self, query: Query) -> Sequence[SessionSummary]: ...

    async def delete(self, session_id: str) -> None: ...


class Face(Protocol):
    """Whatever a person or a program looks through; returns the exit status."""

    async def run(self, house: House) -> int: ...
