"""A user of the full-screen client: types keys, reads the screen."""

import asyncio
from contextlib import asynccontextmanager

from tests.fake_services import FakeServices
from textual.widgets import Input

from ostler.core.events import MessageDone, TextDelta, ToolCalled
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.core.sessions import OpenSessionRequest
from ostler.core.tools import ToolCall
from ostler.frontends.tui.app import FullScreenApp
from ostler.frontends.tui.options import TuiOptions
from ostler.frontends.tui.projects import OpenedProject
from ostler.frontends.tui.widgets.scroll_rows import ScrollRows
from ostler.frontends.tui.widgets.text_rows import TextRows
from ostler.rendering.measure import _COLOUR
from ostler.testing.session_fixture import SingleSessionManager


def text_of(strips):
    return "\n".join(strip.text.rstrip() for strip in strips)


class TuiUser:
    """Drives the app without a terminal."""

    def __init__(self, app, pilot, services):
        self.app, self.pilot, self.services = app, pilot, services

    @property
    def transcript(self):
        """The whole transcript as text."""
        model = self.app.chat.view.model
        rows = [strip for index in range(len(model.entries)) for strip in model.all_strips(index)]
        return text_of(rows)

    @property
    def visible_text(self):
        """The rows of the transcript that are visible."""
        return text_of(row.strip for row in self.app.chat.view._visible)

    @property
    def dialog(self):
        """The text of the open dialog, with its answers; empty if there is none."""
        screen = self.app.screen if self.app.is_running and self.app.screen_stack else self.app.chat
        if screen is self.app.chat:
            return ""
        bodies = [text_of(body._strips) for body in screen.query(ScrollRows)]
        rows = [_COLOUR.sub("", line) for widget in screen.query(TextRows) for line in widget.lines]
        fields = [field.placeholder for field in screen.query(Input) if field.display]
        return "\n".join((*bodies, *rows, *fields))

    @property
    def screen_text(self):
        return f"{self.transcript}\n{self.dialog}"

    async def wait_for(self, text):
        await self.wait_until(lambda: text in self.screen_text)
        return self.screen_text

    async def wait_until(self, condition):
        async with asyncio.timeout(15):
            while not condition():
                await self.pilot.pause(0.01)

    async def press(self, *keys):
        await self.pilot.press(*keys)

    async def type(self, text):
        """Type a text into the input and send it."""
        self.app.chat.prompt.insert(text)
        await self.press("enter")


@asynccontextmanager
async def full_screen(session, *, size=(100, 30), services=None, manager=None, **options):
    """Run the client with a session during the `with` block."""
    services = services or FakeServices()
    app = FullScreenApp(
        OpenSessionRequest("/work/project"),
        OpenedProject("/work/project", manager or SingleSessionManager(session), lambda: services),
        TuiOptions(**options),
    )
    async with app.run_test(size=size) as pilot:
        user = TuiUser(app, pilot, services)
        await user.wait_until(lambda: app.chat.controller is not None)
        await pilot.pause()
        yield user
        app.chat.detach()
        for live in app.live:
            await live.controller.aclose()
            app.live.remove(live)


def say(text, message_id="m"):
    """A turn that streams a text."""

    async def act(context, _):
        for number in range(0, len(text), 7):
            context.emit(TextDelta(message_id, text[number : number + 7]))
        context.emit(MessageDone(Message(message_id, (TextContent(text),))))

    return act


def call(*names, subject="x"):
    """A turn that calls tools one after the other."""

    async def act(context, _):
        for number, name in enumerate(names):
            made = ToolCall(f"call-{number}", name, {"subject": subject})
            context.emit(ToolCalled(made))
            await context.run_tool(made)
        context.emit(MessageDone(Message("end", (TextContent("Finished."),))))

    return act
