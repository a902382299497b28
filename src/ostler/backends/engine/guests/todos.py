"""The guest that sees to the plan: complex work gets one before other tools run, and the model is reminded of it."""

from ostler.backends.engine.guests.complex_request import is_chinese, is_complex
from ostler.backends.engine.guests.digest import drawn
from ostler.backends.engine.guests.guest import Guest, View
from ostler.vocabulary.events import Reminded, TodosChanged, TurnEnded, TurnStarted
from ostler.vocabulary.message import Message
from ostler.vocabulary.tool_names import find_name
from ostler.vocabulary.tools import Todo

TOOL = "todowrite"
PERIOD = 10
GUIDE = (
    "Reminder, not from the user and not to be mentioned: for work of two or more steps keep a todo list with "
    f"{TOOL}; one item is in progress at a time, and each is marked completed as soon as it is."
)
STARTER = ("Look at what is concerned", "Make the change", "Check that it works")
STARTER_CHINESE = ("查看相关内容", "进行修改", "检查结果")


class TodoGuest(Guest):
    """For one turn; everything it says is appended."""

    def __init__(self) -> None:
        self._steps_since = 0
        self._begun = False

    async def before_step(self, view: View) -> TurnEnded | None:
        if not view.offers(TOOL):
            return None
        if not self._begun:
            self._begun = True
            if _guide_is_due(view):
                view.stage.emit(Reminded(GUIDE))
        elif self._steps_since >= PERIOD and (items := _open_plan(view)):
            self._steps_since = 0
            view.stage.emit(Reminded(f"{GUIDE}\nThe list now:\n{drawn(items)}"))
        return None

    async def before_tools(self, view: View, message: Message) -> TurnEnded | None:
        self._steps_since += not message.continues
        if any(find_name(call.tool, (TOOL,)) for call in message.calls):
            self._steps_since = 0
        elif view.offers(TOOL) and not _open_plan(view) and is_complex(_request(view)):
            items = _starter(_request(view))
            view.stage.emit(TodosChanged(items))
            told = f"A todo list was begun for this work; make it fit with {TOOL}:\n{drawn(items)}"
            view.stage.emit(Reminded(told))
        return None


def _guide_is_due(view: View) -> bool:
    """With complex work, unless it was said within the last prompts: many servers take a late system message badly."""
    if not is_complex(_request(view)):
        return False
    records, prompts = view.stage.records(), 0
    for at in reversed(range(len(records))):
        kind = records.kind(at)
        prompts += kind == "turn_started"
        if prompts >= PERIOD:
            break
        if kind == "reminded" and isinstance(event := records[at].event, Reminded) and event.text.startswith(GUIDE):
            return False
    return True


def _open_plan(view: View) -> tuple[Todo, ...]:
    event = view.tally.newest("todos_changed")
    items = event.items if isinstance(event, TodosChanged) else ()
    return items if any(item.status != "completed" for item in items) else ()


def _request(view: View) -> str:
    event = view.tally.newest("turn_started")
    return event.prompt.text if isinstance(event, TurnStarted) else ""


def _starter(request: str) -> tuple[Todo, ...]:
    words = STARTER_CHINESE if is_chinese(request) else STARTER
    return tuple(Todo(str(n), text, "in_progress" if n == 1 else "pending") for n, text in enumerate(words, 1))
