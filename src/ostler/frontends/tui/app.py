"""The Textual application: opens sessions one after the other and shows them on the chat screen."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import msgspec
from textual import events
from textual.app import App
from textual.binding import BindingType

from ostler.core.errors import OstlerError
from ostler.core.protocols import SessionManager
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.tui.options import TuiOptions
from ostler.frontends.tui.screens.chat_screen import ChatScreen
from ostler.frontends.tui.session_controller import SessionController
from ostler.frontends.tui.themes import DEFAULT_THEME, find_theme, own_themes
from ostler.frontends.tui.workers import start_work
from ostler.interaction.chat_exit import ChatExit
from ostler.text.sanitise import sanitise

if TYPE_CHECKING:
    from ostler.interaction.services import CommandServices


class FullScreenApp(App[int]):
    """Routes between the session, the chat screen and the terminal."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self,
        request: OpenSessionRequest,
        manager: SessionManager,
        services: "Callable[[], CommandServices]",
        options: TuiOptions,
    ) -> None:
        super().__init__()
        self.failure: OstlerError | None = None  # why no session could be opened
        self._request = request
        self._manager = manager
        self._make_services = services
        self._services: CommandServices | None = None
        self._options = options
        self._is_focused = True
        self._is_leaving = False
        self.chat = ChatScreen(options, self.leave)
        for theme in own_themes():
            self.register_theme(theme)
        self.theme = find_theme(self, options.theme) or DEFAULT_THEME

    def on_mount(self) -> None:
        self.push_screen(self.chat)
        self.call_after_refresh(self._open_first)

    def _open_first(self) -> None:
        start_work(self, partial(self._open, self._request.resume, ""), "open")

    async def _open(self, session_id: str, previous: str) -> None:
        """Open a session, or the previous one again if that fails."""
        try:
            session = await self._manager.open(msgspec.structs.replace(self._request, resume=session_id))
        except OstlerError as error:
            if not previous:
                self.failure = error
                self.exit(error.exit_code)
                return
            self.chat.show_note(str(error))
            session = await self._manager.open(msgspec.structs.replace(self._request, resume=previous))
        self._services = self._services or self._make_services()
        themes = sorted(self.available_themes)
        controller = SessionController(session, self._services, self, self.chat.view.model, themes)
        await self.chat.attach(controller)

    def leave(self, chat_exit: ChatExit) -> None:
        """Close the session, then quit or open another one."""
        if not self._is_leaving:
            self._is_leaving = True
            start_work(self, partial(self._leave, chat_exit), "leave")

    async def _leave(self, chat_exit: ChatExit) -> None:
        controller, self.chat.controller = self.chat.controller, None
        if controller:
            await controller.aclose()
        if chat_exit.status is not None:
            self.exit(chat_exit.status)
            return
        self.chat.view.model.clear()
        self._is_leaving = False
        await self._open(chat_exit.session, controller.session.id if controller else "")

    # -- what the controller shows -------------------------------------------------------------------------------

    def show_status(self) -> None:
        self.chat.show_status()

    def show_requests(self) -> None:
        self.chat.show_requests()

    def restore_draft(self, text: str) -> None:
        self.chat.restore_draft(text)

    def set_theme(self, name: str) -> None:
        self.chat.set_theme(name)

    def toggle_details(self) -> None:
        self.chat.toggle_details()

    async def edit_file(self, path: str) -> bool:
        return await self.chat.edit_file(path)

    def alert(self, message: str) -> None:
        """Ring the bell and show a notification, only if the window has no focus."""
        if self._options.bell and not self._is_focused and self._driver is not None:
            text = sanitise(message).replace("\n", " ").replace(";", ",")
            self._driver.write(f"\x1b]9;{text}\x1b\\\a")

    def on_app_focus(self, event: events.AppFocus) -> None:
        self._is_focused = True

    def on_app_blur(self, event: events.AppBlur) -> None:
        self._is_focused = False
