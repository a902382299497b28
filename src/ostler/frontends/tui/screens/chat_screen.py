"""The main screen: cards, transcript, activity, input. It routes keys to the parts and to the controller."""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.timer import Timer

from ostler.core.errors import UsageError
from ostler.frontends.tui.arcade.games import Game
from ostler.frontends.tui.arcade.waiting_game import WaitingGame
from ostler.frontends.tui.copying import TranscriptCopier
from ostler.frontends.tui.keys import ACTIONS, TEXT_ACTIONS, KeyTable
from ostler.frontends.tui.live_sessions import LiveSession
from ostler.frontends.tui.options import TuiOptions
from ostler.frontends.tui.screens.switching import Switcher
from ostler.frontends.tui.status import activity_line, footer_hints, panel_sections, status_cards, welcome_lines
from ostler.frontends.tui.strips import PAINT
from ostler.frontends.tui.transcript.view import TranscriptView
from ostler.frontends.tui.widgets.completion_menu import CompletionMenu
from ostler.frontends.tui.widgets.key_hints import KeyHints
from ostler.frontends.tui.widgets.prompt_field import PromptField
from ostler.frontends.tui.widgets.search_field import SearchField
from ostler.frontends.tui.widgets.status_cards import TALL_ROWS, StatusCards
from ostler.frontends.tui.widgets.text_rows import TextRows
from ostler.frontends.tui.workers import Work, start_work
from ostler.interaction.chat_exit import ChatExit
from ostler.interaction.prompt_history import PromptHistory
from ostler.text.sanitise import sanitise

if TYPE_CHECKING:
    from ostler.frontends.tui.app import FullScreenApp
    from ostler.frontends.tui.screens.request_screen import RequestScreen
    from ostler.frontends.tui.session_controller import SessionController

SPIN_SECONDS = (1.0, 0.25)  # without and with animations
PANEL_COLUMNS = 42
NARROW_COLUMNS = 76  # a narrower window has no room for the panel beside the transcript
LOG_ROWS = 8
NOTE_SECONDS, LONG_NOTE_SECONDS = 3.0, 15.0
GAME_ROWS = 10
MIN_CARD_ROWS = 6  # a lower window shows no cards, so that the input has a row
ROOMY_ROWS = 28  # from this height, the input has empty rows around its text


class ChatScreen(Screen[None]):
    """Shows one session at a time."""

    DEFAULT_CSS = """
    ChatScreen { layers: base menu; background: $background; }
    #cards { dock: top; height: 2; background: $surface; }
    #body { height: 1fr; }
    #transcript { padding: 0 0 0 1; }
    #side { width: 42; background: $surface; padding: 0 1; display: none; }
    #panel { height: 1fr; background: $surface; }
    #waiting-game { height: 10; background: $background; display: none; }
    #search, #search:focus { display: none; border: none; height: 1; background: $panel; padding: 0 1; }
    #log { height: 8; background: $surface; display: none; }
    #activity { height: 1; background: $background; }
    #input, #input:focus { height: auto; min-height: 1; max-height: 10; border: none; border-left: outer $primary;
        padding: 0 1; background: $panel; }
    #input.plan { border-left: outer $secondary; }
    #input.accept-edits { border-left: outer $warning; }
    #input .text-area--placeholder { color: $foreground; text-style: italic; }
    ChatScreen.tall #input { padding: 1 1; max-height: 12; }
    ChatScreen.tall #activity { height: 2; padding-top: 1; }
    #footer { height: 1; background: $background; }
    #completions { layer: menu; dock: bottom; height: 0; margin-bottom: 2; background: $panel; display: none; }
    #completions > .muted { color: $foreground 60%; }
    """
    AUTO_FOCUS: ClassVar[str | None] = "#input"

    def __init__(self, options: TuiOptions, owner: "FullScreenApp") -> None:
        super().__init__()
        self.owner = owner
        self.keys = KeyTable(options.keys)
        self.live: LiveSession | None = None
        self.view = TranscriptView(options.frames_per_second)
        self.view.details = options.details
        self._options = options
        menu = CompletionMenu()
        self.menu = menu
        self.prompt = PromptField(PromptHistory(None), self.keys, menu)
        self._requests: RequestScreen | None = None
        self._spinner: Timer | None = None
        self._frame = 0
        self._switcher = Switcher(owner)
        self._games: dict[str, Game] = {}
        self._copier = TranscriptCopier(self.view, owner.write_terminal, self.show_note)
        self._note = ""
        self._note_timer: Timer | None = None
        for action in ACTIONS:
            if action.name != "newline" and (keys := self.keys.single_keys(action.name)):
                self._bindings.bind(",".join(keys), f"do('{action.name}')", action.description, priority=True)

    def compose(self) -> ComposeResult:
        yield StatusCards()
        with Horizontal(id="body"):
            yield self.view
            with Vertical(id="side"):
                yield TextRows(id="panel")
                yield WaitingGame(self._options.arcade if self._options.animations else "off")
        yield SearchField(self.view, self.show_note)
        yield TextRows(id="log", keep_last=True, margin=1)
        yield TextRows(id="activity", margin=1)
        yield self.prompt
        yield KeyHints(id="footer", margin=1)
        yield self.menu

    def on_mount(self) -> None:
        self.view.welcome = list(welcome_lines(self.owner.project.cwd, self.keys))
        self.on_prompt_field_mode_changed()
        if problem := self.keys.problem:
            self.show_note(f"ui.keys: {problem}", seconds=LONG_NOTE_SECONDS)
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self.prompt.place_cursor())

    def on_resize(self) -> None:
        cards = self.query_one("#cards")
        cards.display = self.size.height >= MIN_CARD_ROWS
        cards.styles.height = 2 if self.size.height >= TALL_ROWS else 1
        self.set_class(self.size.height >= ROOMY_ROWS, "tall")
        self._place_panel()
        self.show_status()

    def _place_panel(self) -> None:
        """Show the panel beside the transcript, or instead of it in a narrow window."""
        side, is_narrow = self.query_one("#side"), self.size.width < NARROW_COLUMNS
        side.styles.width = "1fr" if is_narrow else PANEL_COLUMNS
        self.view.display = not (is_narrow and side.display)

    def set_theme(self, name: str) -> None:
        """Switch to a theme; without a name, let the user choose one."""
        self._switcher.set_theme(name)

    # -- the session ---------------------------------------------------------------------------------------------

    @property
    def controller(self) -> "SessionController | None":
        """The controller of the shown session, if one is open."""
        return self.live.controller if self.live else None

    def attach(self, live: LiveSession) -> None:
        """Show a session."""
        self.detach()
        self.live = live
        project = live.project
        self.prompt.use_project(live.controller.completion, PromptHistory(project.history), project.is_sensitive)
        if live.draft:
            self.prompt.restore_draft(live.draft)
            live.draft = ""
        self.view.welcome = list(welcome_lines(project.cwd, self.keys))
        self.view.show_model(live.controller.model)
        self.prompt.focus()
        self.show_status()
        self.show_requests()

    def detach(self) -> None:
        """Stop showing the session. An open request stays open."""
        self.live = None
        self.menu.close()
        if self._requests is not None:
            self._requests.close()

    def show_status(self) -> None:
        controller = self.controller
        if controller is None or not self.is_mounted:
            return
        self.query_one(StatusCards).show(
            status_cards(controller, os.path.basename(self.owner.project.cwd), self.owner.live.others)
        )
        mode = controller.commands.usage.option("mode")
        self.prompt.set_class(mode == "plan", "plan").set_class(mode == "accept-edits", "accept-edits")
        self._show_activity()
        side, panel, game = self.query_one("#side"), self.query_one("#panel", TextRows), self.query_one(WaitingGame)
        game.run(bool(side.display) and controller.turns.busy and not controller.requests)
        if side.display:
            rows = side.size.height - (GAME_ROWS if game.is_playing else 0)
            panel.show(panel_sections(controller, panel.size.width, max(rows, 1)))
        log = self.query_one("#log", TextRows)
        if log.display:
            log.show([f"{moment} {text}" for moment, text in list(controller.feed.lines)[-LOG_ROWS:]])
        self._spin(controller.turns.busy)

    def _show_activity(self) -> None:
        if self.controller:
            line = activity_line(self.controller, self.view.model, self.size.width, self._frame)
            if self.controller.turns.busy and not self.view.viewport.following:
                newest = f"↓ {self.keys.label('to_end')} shows the newest  "
                line = PAINT(newest, "yellow") + line
            self.query_one("#activity", TextRows).show([self._note or line])

    def _spin(self, busy: bool) -> None:
        if busy and self._spinner is None:
            self._spinner = self.set_interval(SPIN_SECONDS[self._options.animations], self._next_frame)
        elif not busy and self._spinner:
            self._spinner.stop()
            self._spinner = None

    def _next_frame(self) -> None:
        self._frame += self._options.animations
        if self.app.screen is self:  # below a dialog, every change would draw the whole screen
            self._show_activity()

    def show_requests(self) -> None:
        controller = self.controller
        if controller is None:
            return
        if self._requests is not None:
            self._requests.update_request()
        elif controller.requests and self.app.screen is self:  # otherwise when the other dialog is closed
            from ostler.frontends.tui.screens.request_screen import RequestScreen

            self.menu.close()
            passed = {key: name for name in ("sessions", "next_waiting") for key in self.keys.keys(name)}
            self._requests = RequestScreen(controller, self.prompt, self._show_above, passed, self.action_do)
            self.app.push_screen(self._requests, self._on_requests_closed)

    def on_screen_resume(self) -> None:
        """Show a request that arrived while another dialog was open."""
        if self._requests is None and self.controller and self.controller.requests:
            self.prompt.last_key = time.monotonic()  # keys of that dialog are not answers
            self.show_requests()

    def _show_above(self, rows: int) -> None:
        """Show the end of the transcript above a dialog that covers the last rows of the window."""
        self.view.cover(rows - (self.size.height - self.view.region.bottom))

    def _on_requests_closed(self, _: None) -> None:
        self._requests = None
        self.view.cover(0)
        self.prompt.focus()
        self.show_requests()

    def restore_draft(self, text: str) -> None:
        self.prompt.restore_draft(text)

    def show_note(self, text: str, *, seconds: float = NOTE_SECONDS) -> None:
        """Show a short message in the activity row for a moment."""
        self._note = PAINT(sanitise(text), "yellow")
        self._show_activity()
        if not self.controller:
            self.query_one("#activity", TextRows).show([self._note])
        if self._note_timer:
            self._note_timer.stop()
        self._note_timer = self.set_timer(seconds, self._clear_note)

    def _clear_note(self) -> None:
        self._note = ""
        self._show_activity()

    # -- input ---------------------------------------------------------------------------------------------------

    async def on_prompt_field_submitted(self, event: PromptField.Submitted) -> None:
        self.view.selected = None
        self.view.to_end()
        if self.controller is None:
            self.prompt.restore_draft(event.text)
            self.show_note("the session is still opening")
            return
        work = partial(self.controller.submit, event.text, event.pasted, steering=event.steering)
        start_work(self, work, "submit")

    def on_prompt_field_mode_changed(self) -> None:
        label = self.prompt.mode_label
        self.query_one(KeyHints).show_hints([*([(label, "(vi)")] if label else []), *footer_hints(self.keys)])

    async def on_prompt_field_chord_pressed(self, event: PromptField.ChordPressed) -> None:
        await self.action_do(event.action)

    def _edit_text(self) -> None:
        start_work(self, self._edit_draft, "editor", exclusive=True)

    async def _edit_draft(self) -> None:
        from ostler.interaction.external_editor import edit_text

        try:
            self.prompt.put_text(await edit_text(self.prompt.full_text, self.edit_file))
        except UsageError as error:
            self.show_note(str(error))

    async def edit_file(self, path: str) -> bool:
        from ostler.interaction.external_editor import run_editor

        with self.app.suspend():
            return await run_editor(path)

    def on_prompt_field_escape_pressed(self) -> None:
        if self.view.selected is not None or not self.view.viewport.following:
            self.view.to_end()
        elif self.controller and self.controller.turns.busy:
            self.controller.interrupt()

    def on_completion_menu_chosen(self, event: CompletionMenu.Chosen) -> None:
        self.prompt.accept(event.completion)

    def on_text_area_changed(self) -> None:
        self.menu.styles.margin = (0, 0, self.prompt.outer_size.height + 1, 0)

    def on_transcript_view_clicked(self, event: TranscriptView.Clicked) -> None:
        model = self.view.model
        if event.entry < len(model.entries) and model.entries[event.entry].kind in ("call", "message"):
            model.toggle_fold(event.entry)

    def on_transcript_view_selected(self, event: TranscriptView.Selected) -> None:
        self._copier.copy_selection(event.text)

    # -- actions -------------------------------------------------------------------------------------------------

    async def action_do(self, name: str) -> None:
        """Run an action of the key table; one that uses the text after the keys that were typed before it."""
        if name in TEXT_ACTIONS and self.focused is self.prompt:
            self.prompt.call_later(self._perform, name)
        else:
            self._perform(name)

    def _perform(self, name: str) -> None:
        if switch := self._switch_actions().get(name):
            start_work(self, switch, "switch", exclusive=True)  # some lists take long
        elif action := self._actions().get(name):
            action()

    def _actions(self) -> dict[str, Callable[[], None]]:
        view = self.view
        return {
            "page_up": partial(view.page, -1),
            "page_down": partial(view.page, 1),
            "line_up": partial(view.scroll_rows, -1),
            "line_down": partial(view.scroll_rows, 1),
            "to_start": view.to_start,
            "to_end": view.to_end,
            "select_previous": partial(view.select, -1),
            "select_next": partial(view.select, 1),
            "fold": view.toggle_fold,
            "details": self.toggle_details,
            "help": self._show_help,
            "steer": lambda: self.prompt.send(steering=True),
            "stash": lambda: self.show_note(self.prompt.toggle_stash()),
            "quit": lambda: self.owner.leave(ChatExit(0)),
            "copy_answer": self._copier.copy_answer,
            "copy_code": self._copier.copy_code,
            "copy_all": self._copier.copy_all,
            "search": self.query_one(SearchField).open,
            "log": self._toggle_log,
            "arcade": self._play,
            "next_waiting": self.owner.show_next_waiting,
            "redraw": self.owner.redraw,
            "theme": partial(self._switcher.set_theme, ""),
            "history": self._switcher.choose_prompt,
            "sessions": self._switcher.show_overview,
            "palette": self._switcher.show_palette,
            "editor": self._edit_text,
            "interrupt": self._interrupt,
            "withdraw": self._withdraw,
            "leave": self._leave,
            "next_mode": self._next_mode,
            "suspend": self.app.action_suspend_process,
            "panel": self._toggle_panel,
            "mouse": self._toggle_mouse,
        }

    def _switch_actions(self) -> dict[str, Work]:
        switcher = self._switcher
        return {
            "project": switcher.choose_project,
            "backend": switcher.choose_backend,
            **{option: partial(switcher.choose_option, option) for option in ("agent", "model", "profile")},
        }

    def _play(self) -> None:
        if self._options.arcade == "off":
            self.show_note('games are off; set "arcade" in the section "ui" of your settings')
            return
        from ostler.frontends.tui.arcade.arcade_screen import ArcadeScreen

        self.app.push_screen(ArcadeScreen(self._games, self._attention, self._options.arcade))

    def _attention(self) -> str:
        """Return what needs the user now, or an empty string."""
        if any(live.activity == "waiting" for live in self.owner.live):
            return "a session waits for your answer; Esc shows it"
        return "the turn has ended" if self.controller and not self.controller.turns.busy else ""

    def _show_help(self) -> None:
        from ostler.frontends.tui.screens.help_screen import HelpScreen

        self.app.push_screen(HelpScreen(self.keys))

    def toggle_details(self) -> None:
        model = self.view.model
        model.set_details(not model.details)
        self.view.details = model.details
        self.show_note(f"tool calls are now shown {'in full' if model.details else 'shortened'}")

    def _interrupt(self) -> None:
        if self.prompt.text:
            self.prompt.clear_text()
        elif self.controller:
            self.controller.interrupt()
        else:
            self.owner.leave(ChatExit(130))

    def _withdraw(self) -> None:
        text = self.controller.turns.withdraw_last() if self.controller else ""
        if text:
            self.prompt.restore_draft(text)
        else:
            self.show_note("nothing is queued")

    def _leave(self) -> None:
        if self.prompt.text:
            self.prompt.action_delete_right()
        else:
            self.owner.leave(ChatExit(0))

    def _next_mode(self) -> None:
        if self.menu.is_open:
            self.menu.move(-1)
        elif self.controller:
            start_work(self, self.controller.next_mode, "mode")

    def _toggle_panel(self) -> None:
        side = self.query_one("#side")
        side.display = not side.display
        self._place_panel()
        self.call_after_refresh(self.show_status)

    def _toggle_log(self) -> None:
        log = self.query_one("#log")
        log.display = not log.display
        self.call_after_refresh(self.show_status)

    def on_search_field_closed(self) -> None:
        self.prompt.focus()

    def _toggle_mouse(self) -> None:
        self.owner.set_mouse(not self.owner.has_mouse)
        self.show_note("mouse on" if self.owner.has_mouse else "mouse off: select text with the terminal")
