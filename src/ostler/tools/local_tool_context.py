"""The context of a running tool, limited to what tools of its place can use."""

from collections.abc import Sequence

import msgspec

from ostler.core.display import Display
from ostler.core.events import Event, ToolProgress
from ostler.core.permission import Question, QuestionReply
from ostler.core.protocols import BackendContext, Workspace
from ostler.core.tools import ChildTask, ToolCall, ToolPlace, ToolResult


class LocalToolContext:
    """The context of one running tool.

    Only a session tool uses the session's events and child sessions, and only a workspace tool uses the workspace:
    the other may be on another machine. Anything else raises `TypeError`, because the tool's declaration is wrong.
    """

    def __init__(
        self,
        call: ToolCall,
        place: ToolPlace,
        workspace: Workspace,
        context: BackendContext,
        *,
        read_only: bool = False,
    ) -> None:
        self.call_id = call.id
        self.read_only = read_only
        self._tool_name = call.tool
        self._place = place
        self._workspace = workspace
        self._context = context

    @property
    def workspace(self) -> Workspace:
        self._check_place("workspace")
        return self._workspace

    def progress(self, display: Display) -> None:
        self._context.emit(ToolProgress(self.call_id, display))

    def persist(self, event: Event) -> None:
        self._check_place("session")
        self._context.emit(event)

    def events(self) -> Sequence[Event]:
        self._check_place("session")
        return self._context.events()

    def may_read(self, path: str) -> bool:
        if not path:
            return self._context.may_read(self.call_id, path)
        places = {path, self.workspace.resolve(path).display_path}
        return all(self._context.may_read(self.call_id, place) for place in places)

    async def ask(self, question: Question) -> QuestionReply:
        return await self._context.ask(msgspec.structs.replace(question, asked_by=question.asked_by or self._tool_name))

    async def spawn(self, task: ChildTask) -> ToolResult:
        self._check_place("session")
        return await self._context.spawn(task)

    def _check_place(self, place: ToolPlace) -> None:
        if self._place != place:
            raise TypeError(f'{self._tool_name} must declare runs_in = "{place}" to use this')
