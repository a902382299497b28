"""What slash commands need beyond the session: the workspace and what is kept, as the person uses them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

import msgspec

from ostler.core.prompt import Prompt
from ostler.core.protocols import Session
from ostler.core.sessions import SessionSummary
from ostler.core.tools import ToolCall, ToolResult

Direction = Literal["undo", "redo"]
RunTool = Callable[[ToolCall], Awaitable[ToolResult]]


class BuiltPrompt(msgspec.Struct, frozen=True):
    """A prompt to begin a turn with, and what its person is told of it."""

    prompt: Prompt
    notices: Sequence[str] = ()


class NamedItem(msgspec.Struct, frozen=True):
    """Something that can be chosen by its name, a line on what it is, and what it stands for if that has a name too."""

    name: str
    description: str = ""
    target: str = ""


class CommandServices(Protocol):
    """Handed to a face by whoever starts it; every refusal is an `OstlerError` of one sentence."""

    async def build_prompt(self, text: str) -> BuiltPrompt:
        """Plain words, with the files they mention and the agent they choose."""

    async def undo(self, direction: Direction, turns: Sequence[str]) -> Sequence[str]:
        """Undo or redo what turns changed in the files, in that order, told in lines; without any, the last one."""

    def undo_gaps(self) -> Sequence[str]:
        """What undo does not reach here, as it was last told."""

    async def models(self) -> Sequence[str]:
        """The models of the endpoint in use."""

    def profiles(self) -> Sequence[NamedItem]:
        """The models that the settings name, each with the model it stands for."""

    def environment_labels(self) -> Sequence[str]:
        """The sandbox and the git branch, in a few words each."""

    async def agents(self) -> Sequence[NamedItem]:
        """The agents a person can talk to."""

    async def skills(self) -> Sequence[NamedItem]:
        """The skills a model may load."""

    async def commands(self) -> Sequence[NamedItem]:
        """The commands that the person's and the project's files define."""

    async def expand(self, name: str, arguments: str, run_tool: RunTool) -> BuiltPrompt | None:
        """A command of theirs as a prompt, what it runs through the session's door; nothing when there is none."""

    async def sessions(self, query: str) -> Sequence[SessionSummary]:
        """The workspace's sessions, newest first; with words, those that have them."""

    async def find_session(self, session_ref: str) -> str:
        """The id of the session that is meant."""

    async def fork(self, session_id: str, seq: int) -> str:
        """The id of a copy that ends with a record, or with 0 has all of them."""

    async def export(self, session_id: str, output: str) -> str:
        """Write a copy without secrets; where it is."""

    async def mcp(self) -> Sequence[str]:
        """The MCP servers, in a line each."""

    async def diff(self, path: str) -> str:
        """What differs from the last commit, as a unified diff."""

    def context(self, session: Session) -> Sequence[str]:
        """What the session's next request is made of, a line for each piece; nothing where that is not known."""

    async def doctor(self) -> Sequence[str]:
        """What this machine has and lacks, in lines."""

    def memory(self) -> str:
        """The file of rules for this workspace; it need not be there."""

    def take_unsent_prompts(self) -> str:
        """What waited in a session of this workspace whose process was killed, once."""

    async def files(self, query: str) -> Sequence[str]:
        """Paths of the workspace that a few letters may mean, the likeliest first; a folder ends with a slash."""
