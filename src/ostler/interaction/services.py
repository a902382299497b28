"""Protocol of everything slash commands need besides the session: files, sessions, models, agents, undo."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

import msgspec

from ostler.core.events import TurnStarted
from ostler.core.prompt import Prompt
from ostler.core.protocols import Session
from ostler.core.sessions import SessionSummary
from ostler.core.tools import ToolCall, ToolResult
from ostler.text.session_title import session_title

Direction = Literal["undo", "redo"]
RunTool = Callable[[ToolCall], Awaitable[ToolResult]]


class BuiltPrompt(msgspec.Struct, frozen=True):
    """A prompt to start a turn with, and notices about it for the user.

    `questions` is what the prompt leaves out because it needs the user's approval.
    """

    prompt: Prompt
    notices: Sequence[str] = ()
    questions: Sequence[str] = ()


class NamedItem(msgspec.Struct, frozen=True):
    """An item to choose by name. `target` is the model that a profile selects; `active` marks the default one."""

    name: str
    description: str = ""
    target: str = ""
    active: bool = False


class PromptSource(msgspec.Struct, frozen=True):
    """How a prompt was entered: the active agent, text that was pasted, and whether the user approved its questions.

    `session_id` is the session whose MCP servers the prompt can mention.

    With `may_be_pasted` the frontend cannot tell whether the rest was typed, so every agent and every path outside the
    workspace is a question.
    """

    agent: str = ""
    pasted: str = ""
    approved: bool = False
    may_be_pasted: bool = False
    session_id: str = ""


TYPED = PromptSource()


def active_agent(session: Session) -> str:
    """Return the name of the session's agent, or an empty string if its backend has none."""
    return next((option.value for option in session.info.options if option.id == "agent"), "")


def working_agent(session: Session, prompt: Prompt) -> str:
    """Return the agent that runs a prompt."""
    target = prompt.target
    return target.agent if target and target.agent and not target.task else active_agent(session)


def current_title(session: Session) -> str:
    """Return the title of a session; before it has one, the start of its first prompt with text, if there is one."""
    if session.state.title:
        return session.state.title
    records = session.records()
    events = (records[index].event for index in records.indexes_of(("turn_started",)))
    titles = (session_title(event.prompt.text) for event in events if isinstance(event, TurnStarted))
    return next((title for title in titles if title), "")


def left_out_notices(built: BuiltPrompt) -> tuple[str, ...]:
    """Return the notices about a prompt that is sent without asking its questions."""
    agents = (question for question in built.questions if question.startswith("switch "))
    return (*built.notices, *(f"your prompt does not {question}: that needs your approval" for question in agents))


class CommandServices(Protocol):
    """Services that a frontend gets for its slash commands. All methods raise `OstlerError` on failure."""

    async def build_prompt(self, text: str, source: PromptSource = TYPED) -> BuiltPrompt:
        """Build a prompt from typed text, with the files it mentions and the agent it selects."""

    async def undo(self, direction: Direction, turns: Sequence[str], session_id: str) -> Sequence[str]:
        """Undo or redo the file changes of these turns, in this order; without turns, the session's last change.

        Return lines that describe what was done.
        """

    def undo_gaps(self) -> Sequence[str]:
        """Return the paths that undo does not cover, as last reported."""

    async def models(self) -> Sequence[str]:
        """Return the models of the current endpoint."""

    def profiles(self) -> Sequence[NamedItem]:
        """Return the model profiles of the settings, each with its model as `target`."""

    def environment_labels(self) -> Sequence[str]:
        """Return short labels for the sandbox and the git branch."""

    async def agents(self) -> Sequence[NamedItem]:
        """Return the agents that the user can select."""

    async def skills(self) -> Sequence[NamedItem]:
        """Return the skills that the model can load."""

    async def commands(self, session: Session) -> Sequence[NamedItem]:
        """Return the custom commands of the user and the project, and the prompts of the session's MCP servers."""

    async def expand(
        self, name: str, arguments: str, run_tool: RunTool, source: PromptSource = TYPED
    ) -> BuiltPrompt | None:
        """Expand a custom command or a server's prompt; `run_tool` runs shell parts. Return None if unknown."""

    async def sessions(self, query: str) -> Sequence[SessionSummary]:
        """Return the workspace's sessions, newest first; only those that match `query` if it is not empty."""

    async def find_session(self, session_ref: str) -> str:
        """Return the id of the session that a reference (id, prefix, title) names."""

    async def has_session(self, session_id: str) -> bool:
        """Return whether the workspace has a session with exactly this id."""

    async def fork(self, session_id: str, seq: int) -> str:
        """Copy a session up to record `seq`, or completely if it is 0. Return the copy's id."""

    async def export(self, session: Session, output: str) -> str:
        """Write a copy without secrets to a file and return its path."""

    async def mcp(self, session: Session, action: str) -> Sequence[str]:
        """Run `restart`, `disable` or `enable NAME` if there is an action; return lines about the MCP servers."""

    async def diff(self, path: str) -> str:
        """Return the changes since the last commit as a unified diff."""

    def context(self, session: Session) -> Sequence[str]:
        """Return one line for each part of the next request, or none if that is unknown."""

    async def doctor(self) -> Sequence[str]:
        """Return the report of `ostler doctor`."""

    def memory(self) -> str:
        """Return the path of the workspace's rules file, which may not exist."""

    def take_unsent_prompts(self) -> str:
        """Return the queued prompts of a killed session of this workspace; later calls return an empty string."""

    async def resources(self, session: Session, query: str) -> Sequence[NamedItem]:
        """Return the `server:uri` mentions of resources of the session's MCP servers that begin with `query`."""

    async def files(self, query: str) -> Sequence[str]:
        """Return the workspace paths that match `query`, best first; folders end with a slash."""
