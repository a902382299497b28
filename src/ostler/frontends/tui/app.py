"""The Textual application: opens sessions and shows one of them on the chat screen."""

import time
from collections.abc import Callable
from functools import partial

import msgspec
from textual import events
from textual.screen import Screen

from ostler.core.errors import OstlerError
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.tui.live_sessions import LiveSession, LiveSessions
from ostler.frontends.tui.notifications import notification
from ostler.frontends.tui.options import TuiOptions
from ostler.frontends.tui.painted_app import PaintedApp
from ostler.frontends.tui.projects import OpenedProject
from ostler.frontends.tui.screens.chat_screen import ChatScreen
from ostler.frontends.tui.themes import DEFAULT_THEME, find_theme, own_themes
from ostler.frontends.tui.workers import WorkFailed, start_work
from ostler.interaction.chat_exit import ChatExit
from ostler.interaction.services import CommandServices

STOP_HINT = "in the background: quit again to stop"
WARNED_SECONDS = 10.0


class FullScreenApp(PaintedApp, inherit_bindings=False):
    """Routes between the sessions, the chat screen and the terminal. Textual's keys would end it at once."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        request: OpenSessionRequest,
        project: OpenedProject,
        options: TuiOptions,
        on_first_frame: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._on_first_frame = on_first_frame
        self.failure: OstlerError | None = None  # why no session could be opened
        self.final_lines: list[str] = []  # to print after the exit
        self._request = request
        self._first_project = project
        self._services: dict[str, CommandServices] = {}
        self.options = options
        self._is_focused = True
        self._is_leaving = False
        self._warned_at = float("-inf")
        self.chat = ChatScreen(options, self)
        for theme in own_themes():
            self.register_theme(theme)
        self.live = LiveSessions(self.chat, sorted(self.available_themes), self._leave_session)
        self.theme = find_theme(self, options.theme) or DEFAULT_THEME
        if not options.animations:
            self.animation_level = "none"

    @property
    def project(self) -> OpenedProject:
        """The project of the shown session, or the first one."""
        return self.live.shown.project if self.live.shown else self._first_project

    def get_default_screen(self) -> Screen[None]:
        return self.chat

    def on_mount(self) -> None:
        self.call_after_refresh(self._open_first)

    def _open_first(self) -> None:
        self._on_first_frame()
        start_work(self, partial(self._open_or_quit, self._request, self.project), "open")

    async def _open_or_quit(self, request: OpenSessionRequest, project: OpenedProject) -> None:
        try:
            await self.show(await self._open(request, project))
        except OstlerError as error:
            self.failure = error
            self.exit(error.exit_code)

    async def on_event(self, event: events.Event) -> None:
        """Give keys to the input if nothing has the focus, as in a window that lost it before the first frame."""
        is_typed = isinstance(event, events.Key | events.Paste)
        if is_typed and self.screen is self.chat and self.chat.focused is None and self.chat.prompt.is_mounted:
            self.chat.set_focus(self.chat.prompt)
        await super().on_event(event)

    # -- sessions ------------------------------------------------------------------------------------------------

    async def _open(self, request: OpenSessionRequest, project: OpenedProject) -> LiveSession:
        session = await project.manager.open(msgspec.structs.replace(request, cwd=project.cwd))
        services = self._services.get(project.cwd) or project.make_services()
        self._services[project.cwd] = services
        live = LiveSession(session, project, services, self.chat.view.new_model(), self.live, request.backend)
        self.live.add(live)
        await live.controller.start()
        return live

    async def show(self, live: LiveSession) -> None:
        """Show an open session; the one shown before continues in the background."""
        before = self.live.shown
        if before is not None and before is not live:
            before.draft = self.chat.prompt.take_text()
        self.live.shown = live
        self.chat.attach(live)

    async def switch(self, session_id: str, cwd: str = "", *, backend: str = "", prompt: str = "") -> None:
        """Show a session, opened if necessary, or a new one without an id; then send it a prompt, if there is one."""
        live = self.live.find(session_id)
        if live is None:
            live = await self._open_other(session_id, cwd or self.project.cwd, backend or self._request.backend)
        await self.show(live)
        if prompt:
            await live.controller.submit(prompt, "")

    def _open_project(self, cwd: str, backend: str, session_id: str) -> OpenedProject:
        if self.options.projects:
            return self.options.projects.open(cwd, backend, session_id)
        if cwd != self._first_project.cwd:
            raise OstlerError("this client cannot open other folders")
        return self._first_project

    def show_next_waiting(self) -> None:
        """Show the next session that waits for the user."""
        live = self.live.next_waiting()
        if live is None or live is self.live.shown:
            self.chat.show_note("no other session waits for you")
        else:
            start_work(self, partial(self.show, live), "show")

    # -- leaving -------------------------------------------------------------------------------------------------

    def leave(self, chat_exit: ChatExit) -> None:
        """Quit, or replace the shown session by another one."""
        if chat_exit.status == 0 and self.live.others and time.monotonic() - self._warned_at > WARNED_SECONDS:
            self._warned_at = time.monotonic()
            self.chat.show_note(f"{self.live.others} {STOP_HINT}")
            return
        if not self._is_leaving:
            self._is_leaving = True
            start_work(self, partial(self._leave, chat_exit), "leave")

    def end_without_terminal(self, status: int) -> None:
        self.leave(ChatExit(status))

    def _leave_session(self, live: LiveSession, chat_exit: ChatExit) -> None:
        if not self.is_running:
            return  # an exception has ended the app, and is shown
        if live is self.live.shown:
            self.leave(chat_exit)
        else:
            self.live.remove(live)  # it ended in the background

    async def _leave(self, chat_exit: ChatExit) -> None:
        shown = self.live.shown
        if chat_exit.status is not None:
            if shown and self.options.leave_transcript:
                self.final_lines = list(shown.controller.model.all_lines(self.size.width))
            self.chat.detach()
            for live in self.live:
                await live.controller.aclose()
                self.live.remove(live)
            self.exit(chat_exit.status)
            return
        self._is_leaving = False
        backend = shown.backend if shown else self._request.backend
        found = self.live.find(chat_exit.session)
        live = found or await self._open_other(chat_exit.session, self.project.cwd, backend)
        if shown and shown is not live:
            self.live.remove(shown)
        await self.show(live)
        if shown and shown is not live:
            await shown.controller.aclose()

    async def _open_other(self, session_id: str, cwd: str, backend: str) -> LiveSession:
        """Open a stored session, which has its own backend, or without an id a new one."""
        backend = "" if session_id else backend
        project = self._open_project(cwd, backend, session_id)
        return await self._open(OpenSessionRequest(cwd, backend, resume=session_id, interactive=True), project)

    def on_work_failed(self, event: WorkFailed) -> None:
        self.show_error(event.text)

    def show_error(self, text: str) -> None:
        """Show an error in the transcript of the shown session."""
        if self.live.shown:
            self.live.shown.controller.show_notice([text])
        else:
            self.chat.show_note(text)

    # -- notifications -------------------------------------------------------------------------------------------

    def alert(self, message: str) -> None:
        """Notify the user, only if the window has no focus."""
        if self.options.bell and not self._is_focused:
            self.write_terminal(notification(message))

    def on_app_focus(self, event: events.AppFocus) -> None:
        self._is_focused = True

    def on_app_blur(self, event: events.AppBlur) -> None:
        self._is_focused = False
