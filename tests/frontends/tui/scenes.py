"""The screens of the full-screen client with a scripted session, each in a state that a picture can show."""

import asyncio

from tests.frontends.tui.tui_user import say

from ostler.core.display import Display, DisplayDiff, DisplayFields
from ostler.core.events import ChildStarted, MessageDone, TextDelta, TodosChanged, ToolCalled
from ostler.core.message import Message
from ostler.core.permission import Need, Permission, Question
from ostler.core.prompt import TextContent
from ostler.core.sessions import SessionSummary
from ostler.core.tools import Todo, ToolCall
from ostler.frontends.tui.arcade.arcade_screen import ArcadeScreen
from ostler.frontends.tui.projects import StoredState
from ostler.testing.fake_tool import FakeTool
from ostler.tools.partial_call import HUNKS_ARGUMENT

ANSWER = """I looked at `greet.py`:

| file | lines |
|------|-------|
| greet.py | 12 |

```python
def greet(name):
    return f"Hello, {name}!"
```

- one
- two
"""
DIFF = """--- a/greet.py
+++ b/greet.py
@@ -1,2 +1,2 @@
 def greet(name):
-    return "Hello, " + name
+    return "Welcome, " + name
@@ -10,2 +10,5 @@
 def main():
     print(greet("you"))
+
+
+def bye(name):
"""
EDIT = Permission(
    "edit src/greet.py",
    (Need("edit", "src/greet.py"),),
    Display("", (DisplayDiff("src/greet.py", DIFF, "updated", 4, 1),)),
)
COMMAND = Permission(
    "run pytest -q | tail -3; curl https://example.org/x",
    tuple(Need("bash", part) for part in ("pytest -q", "tail -3", "curl https://example.org/x")),
    Display("", (DisplayFields((("reason (the model's)", "Run the tests"),)),)),
)
DANGER = Permission("run rm -rf build", (Need("bash", "rm -rf build", "confirm", "rm: deletes files"),))
QUESTION = Question(
    "q", "Which database should it use?", {"type": "object", "properties": {"database": {"enum": ["SQLite", "MySQL"]}}}
)


class Asking(FakeTool):
    """A tool that needs a given permission, and that can be allowed in part."""

    unlisted = (HUNKS_ARGUMENT,)

    def __init__(self, name, permission):
        super().__init__(name)
        self._permission = permission

    async def permission(self, params, workspace):
        return self._permission


TOOLS = [Asking("edit", EDIT), Asking("bash", COMMAND), Asking("clean", DANGER)]


class Projects:
    """Stored sessions for the overview."""

    async def sessions(self):
        waiting = StoredState(SessionSummary("b", "/work/other", "Fix the parser", turns=3), "waiting", is_open=True)
        working = StoredState(SessionSummary("c", "/work/site", "Update the page", turns=2), "working", is_open=True)
        return [
            StoredState(SessionSummary("a", "/work/other", "Write the docs", turns=1), "done", False, "main"),
            waiting,
            working,
        ]

    async def server_sessions(self):
        return ()


def work(finish: asyncio.Event):
    """A turn with tasks, a subagent and a call that runs until `finish`."""

    async def act(context, _):
        done, now, later = (
            Todo(str(n), text, state)
            for n, (text, state) in enumerate(
                (("Read the code", "completed"), ("Fix the greeting", "in_progress"), ("Run the tests", "pending"))
            )
        )
        context.emit(TodosChanged((done, now, later)))
        context.emit(ToolCalled(ToolCall("child", "task", {"description": "look around", "agent": "explore"})))
        context.emit(ChildStarted("s", "child", "explore", "look around"))
        context.emit(TextDelta("m2", "I look at the code first.\n\n"))
        await finish.wait()
        context.emit(MessageDone(Message("m2", (TextContent("I look at the code first."),))))

    return act


def ask(tool):
    async def act(context, _):
        call = ToolCall(f"call-{tool}", tool, {"subject": "x"})
        context.emit(ToolCalled(call))
        await context.run_tool(call)

    return act


async def question(context, _):
    await context.ask(QUESTION)


async def scenes(user, finish):
    """Show one screen after the other and yield the name of each."""
    chat = user.app.chat
    yield "empty"
    await user.press(*"/mo")
    await user.wait_until(lambda: chat.menu.is_open)
    yield "completion"
    chat.prompt.clear_text()
    await run(user, "look at it")
    yield "answer"
    async for name in _work(user, finish):
        yield name
    async for name in _requests(user):
        yield name
    async for name in _screens(user):
        yield name


async def _work(user, finish):
    chat = user.app.chat
    await user.type("work")
    await user.wait_until(lambda: "I look at" in user.transcript)
    await user.press("f4")
    yield "working"
    finish.set()
    await user.press("f4")
    await user.wait_until(lambda: not chat.controller.turns.busy)


async def _requests(user):
    for name in ("edit", "bash", "clean", "question"):
        await user.app.chat.controller.submit(name, "")  # Enter just after a dialog would be ignored
        await user.wait_until(lambda: user.app.screen is not user.app.chat and user.app.chat._requests)
        await user.pilot.pause(0.05)
        yield f"request-{name}"
        if name == "edit":
            user.app.chat.controller.answer("h")
            await user.wait_until(lambda: "hunk 1" in user.dialog)
            yield "request-hunk"
        user.app.chat.controller.session.turn.cancel()
        await user.wait_until(lambda: user.app.screen is user.app.chat and not user.app.chat.controller.turns.busy)


async def _screens(user):
    for name, key in (("help", "f1"), ("palette", "f2"), ("overview", "f5")):
        await user.press(key)
        await user.wait_until(lambda: user.app.screen is not user.app.chat)
        yield name
        await user.press("escape")
    user.app.chat.set_theme("")
    await user.wait_until(lambda: user.app.screen is not user.app.chat)
    yield "themes"
    await user.press("escape")
    await user.press("ctrl+f", *"greet", "enter", "f7", "ctrl+up")
    yield "search"
    await user.press("escape", "f7", "f3")
    await user.wait_until(lambda: isinstance(user.app.screen, ArcadeScreen))
    for _ in range(30):
        user.app.screen._next_frame()
    yield "arcade"
    await user.press("escape")


async def run(user, text):
    await user.type(text)
    await user.wait_until(lambda: user.app.chat.controller.turns.busy or "> " + text in user.transcript)
    await user.wait_until(lambda: not user.app.chat.controller.turns.busy)


def turns(finish):
    return [say(ANSWER), work(finish), ask("edit"), ask("bash"), ask("clean"), question]
