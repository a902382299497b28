"""Plugin that starts a todo list for complex requests and reminds the model of it."""

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
STARTER = ("Inspect the relevant code", "Make the change", "Check that it works")
STARTER_CHINESE = ("查看相关内容", "进行修改", "检查结果")


class TodoPlugin(LoopPlugin):
    """Works for one turn; its texts are only appended to the history."""

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
            view.context.emit(TodosChanged(items, starter=True))
            text = f"A todo list was started; adjust it with {TODO_TOOL}:\n{render_todos(items)}"
            view.context.emit(Reminded(text))
        return None


def _guide_is_due(view: TurnView) -> bool:
    """Return whether to send the guide: for complex requests, if it was not sent within the last prompts.

    It is not sent more often because many servers handle late system messages badly.
    """
    if not is_complex(_request_text(view)):
        return False
    records, prompts = view.context.records(), 0
    for index in reversed(range(len(records))):
        kind = records.type_at(index)
        prompts += kind == "turn_started"
        if prompts >= REMIND_EVERY:
            break
        if kind == "reminded" and isinstance(event := records[index].event, Reminded) and event.text.startswith(GUIDE):
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
    texts = STARTER_CHINESE if is_chinese(request) else STARTER
    return tuple(Todo(str(n), text, "in_progress" if n == 1 else "pending") for n, text in enumerate(texts, 1))
