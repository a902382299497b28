"""The guest that sees to the plan: complex work gets one before other tools run, and the model is reminded of it."""

from ostler.backends.engine.plugins.compaction_digest import render_todos
from ostler.backends.engine.plugins.complex_request import is_chinese, is_complex
from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.core.events import Reminded, TodosChanged, TurnEnded, TurnStarted
from ostler.core.message import Message
from ostler.core.tool_aliases import resolve_tool_name
from ostler.core.tools import Todo

TODO_TOOL = "todowrite"
REMIND_EVERY = 10
GUIDE = (
    "Reminder, not from the user and not to be mentioned: for work of two or more steps keep a todo list with "
    f"{TODO_TOOL}; one item is in progress at a time, and each is marked completed as soon as it is."
)
STARTER = ("Look at what is concerned", "Make the change", "Check that it works")
STARTER_CHINESE = ("查看相关内容", "进行修改", "检查结果")


class TodoPlugin(LoopPlugin):
    """For one turn; everything it says is appended."""

    def __init__(self) -> None:
        self._steps_since = 0
        self._started = False

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        if not view.has_tool(TODO_TOOL):
            return None
        if not self._started:
            self._started = True
            if _guide_is_due(view):
                view.context.emit(Reminded(GUIDE))
        elif self._steps_since >= REMIND_EVERY and (items := _open_plan(view)):
            self._steps_since = 0
            view.context.emit(Reminded(f"{GUIDE}\nThe list now:\n{render_todos(items)}"))
        return None

    async def before_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        self._steps_since += not message.continues
        if any(resolve_tool_name(call.tool, (TODO_TOOL,)) for call in message.calls):
            self._steps_since = 0
        elif view.has_tool(TODO_TOOL) and not _open_plan(view) and is_complex(_request_text(view)):
            items = _starter_todos(_request_text(view))
            view.context.emit(TodosChanged(items))
            told = f"A todo list was begun for this work; make it fit with {TODO_TOOL}:\n{render_todos(items)}"
            view.context.emit(Reminded(told))
        return None


def _guide_is_due(view: TurnView) -> bool:
    """With complex work, unless it was said within the last prompts: many servers take a late system message badly."""
    if not is_complex(_request_text(view)):
        return False
    records, prompts = view.context.records(), 0
    for at in reversed(range(len(records))):
        kind = records.type_at(at)
        prompts += kind == "turn_started"
        if prompts >= REMIND_EVERY:
            break
        if kind == "reminded" and isinstance(event := records[at].event, Reminded) and event.text.startswith(GUIDE):
            return False
    return True


def _open_plan(view: TurnView) -> tuple[Todo, ...]:
    event = view.stats.latest("todos_changed")
    items = event.items if isinstance(event, TodosChanged) else ()
    return items if any(item.status != "completed" for item in items) else ()


def _request_text(view: TurnView) -> str:
    event = view.stats.latest("turn_started")
    return event.prompt.text if isinstance(event, TurnStarted) else ""


def _starter_todos(request: str) -> tuple[Todo, ...]:
    words = STARTER_CHINESE if is_chinese(request) else STARTER
    return tuple(Todo(str(n), text, "in_progress" if n == 1 else "pending") for n, text in enumerate(words, 1))
