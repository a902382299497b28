"""The line editor: several lines, history, paste, and a status below the prompt that never enters the scrollback.

One application runs from start to end, so that keys typed between two prompts are neither lost nor echoed by the
terminal. What is printed goes above it: the prompt is taken away, lines are written, the prompt is drawn again. The
prompt comes first and the status below it, so that the cursor is where all of that begins, whatever a terminal makes of
its rows when the window changes.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ostler.faces.repl.answers import Answers
from ostler.faces.repl.console import IDLE, Leave, Line, Menu, Steering, Typed
from ostler.faces.repl.history import open_history, worth_keeping
from ostler.faces.repl.keys import bindings, wait_for_the_rest
from ostler.faces.repl.pastes import Pastes
from ostler.faces.repl.reflow import climbs, reflows, rows_more, taken_away
from ostler.text.sanitise import sanitise
from ostler.text.width import clip, width
from ostler.vocabulary.errors import UsageError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.output.vt100 import Vt100_Output

    from ostler.commands.complete import Completing

GATHER_SECONDS = 0.03
UNDERWAY_SECONDS = 0.05  # what was drawn so short a time ago may not have reached the terminal
STANDING_COLUMNS, PASSING_COLUMNS = 120, 80  # so that a window made narrow has rows enough for what they become
MENU_ROWS = 8
ROWS_BELOW = 5  # the status, the prompt, and what a glance needs to find its place again
OPENING = "opening the session …"


class EditorConsole:
    """A terminal that can do more than plain lines."""

    live = True
    echoes = False
    numbers = False
    has_status = True

    def __init__(
        self, out: TextIO, history: Path | None, *, colour: bool = True, vi: bool = False, bell: bool = False
    ) -> None:
        from ostler.faces.repl.completer import Candidates

        self.hides: Callable[[str], bool] = lambda text: False  # what no history may keep
        self._output = _output(out, colour=colour)
        self._bell = bell
        self._candidates = Candidates()
        self._pastes = Pastes()
        self._typed: asyncio.Queue[Typed] = asyncio.Queue()
        self._menu: Menu | None = IDLE
        self._status = ("", "")
        self._waiting: list[str] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._draft = ""
        self._answers = Answers(
            lambda key: self.push(Line(key)),
            lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call),
        )
        self._last_key = 0.0
        self._session = self._make(history, vi=vi)
        self._session.app.key_processor.before_key_press += self._note_key
        self._session.app.before_render += self._make_room
        self._session.app.after_render += self._rendered
        self._session.default_buffer.on_completions_changed += self._candidates.came
        self._drawn_at = 0.0
        self._erase_cleanly()
        self._draw_in_the_window_as_it_is()
        self._running: asyncio.Task[None] | None = None
        self._suspending: asyncio.Future[None] | None = None
        self._drafting: asyncio.Future[None] | None = None
        self._looking: asyncio.Future[Any] | None = None

    @property
    def page(self) -> tuple[int, int]:
        size = self._output.get_size()
        return size.columns, max(size.rows - ROWS_BELOW, 1)

    # -- out -----------------------------------------------------------------------------------------------------

    def show(self, lines: Sequence[str]) -> None:
        """Soon: lines that come close together are written together."""
        if not lines:
            return
        self._waiting += lines
        self._flush_soon()

    def status(self, passing: str, standing: str) -> None:
        if (passing, standing) != self._status:
            self._status = (passing, standing)
            self._session.app.invalidate()

    def ring(self, told: str) -> None:
        """The bell, and a notice where the terminal knows how to show one."""
        if self._bell and not self._lent:
            self._output.write_raw(f"\x1b]9;{sanitise(told)}\x1b\\\a")
            self._output.flush()

    @property
    def _lent(self) -> bool:
        """Whether another program has the terminal for now."""
        return bool(self._session.app._running_in_terminal)

    def _flush_soon(self) -> None:
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._flush)

    def _flush(self) -> None:
        if self._flushing:
            self._flushing.cancel()
        self._flushing = None
        if self._lent and self._waiting:
            self._flush_soon()
            return
        text = "".join(f"{line}\n" for line in self._waiting)
        self._waiting.clear()
        if text:
            self._write_above(text)

    def _write_above(self, text: str) -> None:
        """With the prompt drawn again in the same piece: it would flicker if the terminal showed what is between."""
        app = self._session.app
        try:
            with _in_one_piece(self._output):
                if app.is_running:
                    app.renderer.erase(leave_alternate_screen=False)
                self._output.write_raw(text)
                app._redraw()
        except OSError:  # the terminal is gone
            self.push(Leave(1))

    # -- in ------------------------------------------------------------------------------------------------------

    @property
    def menu(self) -> Menu | None:
        return self._menu

    @property
    def busy(self) -> bool:
        """Whether something runs that could be cancelled."""
        return self._menu != IDLE

    def expect(self, menu: Menu | None) -> None:
        """An ask lays what is being typed aside, and for a moment takes no key that was meant for that."""
        buffer = self._session.default_buffer
        was_asking, asking = _asks(self._menu), _asks(menu)
        if menu != self._menu or not asking:
            self._answers.over()
        self._menu = menu
        if menu and menu.answers:
            self._answers.ask()
        if asking and not was_asking:
            self._draft = self._pastes.unfold(buffer.text)
            if self._draft:
                self._answers.deafen(self._last_key)
            buffer.reset()
            self._session.app.vi_state.reset()
        elif was_asking and not asking and self._draft:
            self.draft(self._draft)
            self._draft = ""
        self._flush()
        self._session.app.invalidate()

    def draft(self, text: str) -> None:
        buffer = self._session.default_buffer
        buffer.text = self._pastes.fold(text) + (f"\n{buffer.text}" if buffer.text else "")
        buffer.cursor_position = len(buffer.text)

    def paste(self, text: str) -> None:
        """What was pasted, at the cursor."""
        self._session.default_buffer.insert_text(self._pastes.fold(text))

    def completes(self, completing: "Completing") -> None:
        """Files are looked for at once, so that a large tree is known by the time a mention of one is typed."""
        self._candidates.completing = completing
        self._looking = asyncio.ensure_future(completing.candidates("@", asked=False))

    def answer(self, key: str) -> None:
        """A key of an ask, empty for any other."""
        self._answers.press(key)

    def reject(self) -> None:
        """Enter, or a paste, where only a key can answer."""
        self._answers.reject()

    def _rendered(self, _: object) -> None:
        self._drawn_at = time.monotonic()
        self._answers.drawn()

    def _note_key(self, _: object) -> None:
        self._last_key = time.monotonic()

    async def begin(self) -> None:
        """The prompt is drawn when this returns."""
        drawn = asyncio.Event()
        app = self._session.app
        app.after_render += lambda _: drawn.set()
        self.status("", OPENING)
        self._running = asyncio.create_task(self._run(), name="editor")
        await asyncio.wait([self._running, wait := asyncio.create_task(drawn.wait())], return_when="FIRST_COMPLETED")
        wait.cancel()

    async def read(self) -> Typed:
        return await self._typed.get()

    def push(self, typed: Typed) -> None:
        self._typed.put_nowait(typed)

    def send(self, *, steering: bool = False) -> None:
        """Take what is in the editor as a line, or as words for the turn that runs."""
        buffer = self._session.default_buffer
        text = self._pastes.unfold(buffer.text)
        if not _asks(self._menu) and text.strip() and worth_keeping(text) and not self.hides(text):
            self._session.history.append_string(text)
        buffer.reset()
        self._session.app.vi_state.reset()
        self.push(Steering(text) if steering else Line(text))

    async def edit(self, path: str) -> bool:
        from prompt_toolkit.application import in_terminal
        from prompt_toolkit.application.current import set_app

        from ostler.faces.repl.programs import run_editor

        with set_app(self._session.app):
            async with in_terminal():
                return await run_editor(path)

    def edit_typed(self) -> None:
        """What is being typed, in the person's editor."""
        self._drafting = asyncio.ensure_future(self._edit_typed())

    async def _edit_typed(self) -> None:
        """An ask that came meanwhile has laid the text aside; what became of it comes back after it."""
        from ostler.faces.repl.drafting import drafted

        buffer, asked = self._session.default_buffer, _asks(self._menu)
        try:
            text = await drafted(self._pastes.unfold(buffer.text), self.edit)
        except UsageError as error:
            self.show([f"  {sanitise(str(error))}"])
            return
        if _asks(self._menu) and not asked:
            self._draft = text
        else:
            buffer.text = self._pastes.fold(text)
            buffer.cursor_position = len(buffer.text)

    def suspend(self) -> None:
        """Into the background, with the terminal as it was; drawn anew when it comes back."""
        from prompt_toolkit.application import run_in_terminal
        from prompt_toolkit.application.current import set_app

        with set_app(self._session.app):
            self._suspending = asyncio.ensure_future(run_in_terminal(self._stop))

    def _stop(self) -> None:
        """By the signal's own effect, which the system withholds where nobody could wake us again."""
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTSTP)
        os.kill(0, signal.SIGTSTP)
        loop.add_signal_handler(signal.SIGTSTP, self.suspend)

    async def aclose(self) -> None:
        if self._drafting:
            self._drafting.cancel()
            await asyncio.wait([self._drafting])
        self._flush()
        if self._running is None:
            return
        if self._session.app.is_running:
            self._session.app.exit(result="")
        await asyncio.wait([self._running])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        try:
            draft = self._session.default_buffer.text
            await self._session.prompt_async(default=draft, handle_sigint=False, set_exception_handler=False)
        except (EOFError, OSError):
            self.push(Leave(1))
        finally:
            loop.remove_signal_handler(signal.SIGTSTP)

    def _erase_cleanly(self) -> None:
        """Wherever the prompt is taken away, also the rows that a narrower window made of what was typed."""
        renderer = self._session.app.renderer
        plain_erase = renderer.erase
        climbing, reflowing = climbs(os.environ), reflows(os.environ)

        def erase(leave_alternate_screen: bool = True) -> None:
            if self._lent:
                return  # what stands there is another program's, also when the window changes
            sure = reflowing and not climbing and time.monotonic() - self._drawn_at > UNDERWAY_SECONDS
            more = rows_more(renderer, self._output.get_size().columns) if sure else 0
            cursor = renderer._cursor_pos
            self._output.write_raw(taken_away(cursor.x, cursor.y + more, climbing=climbing))
            renderer._cursor_pos = type(cursor)(0, 0)
            plain_erase(leave_alternate_screen)

        renderer.erase = erase  # type: ignore[method-assign]  # the library has no other place for it

    def _draw_in_the_window_as_it_is(self) -> None:
        """A window may have changed before anybody told us: then nothing on the screen is where it was drawn."""
        renderer = self._session.app.renderer
        plain_render = renderer.render

        def render(*given: Any, **more: Any) -> None:
            if renderer._last_size not in (None, self._output.get_size()):
                renderer.erase(leave_alternate_screen=False)
            plain_render(*given, **more)

        renderer.render = render  # type: ignore[method-assign]

    def _make_room(self, _: object) -> None:
        """Rows for the candidates while there are some, and none of them afterwards."""
        state = self._session.default_buffer.complete_state
        rows = min(len(state.completions) + 1, MENU_ROWS) if state else 0
        if rows < self._session.reserve_space_for_menu:
            self._session.app.renderer.erase(leave_alternate_screen=False)
        self._session.reserve_space_for_menu = rows

    def _make(self, history: Path | None, *, vi: bool) -> "PromptSession[str]":
        from prompt_toolkit import PromptSession

        from ostler.faces.repl.clusters import Apart

        session: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            history=open_history(history),
            key_bindings=bindings(self, self._candidates),
            output=self._output,
            erase_when_done=True,
            reserve_space_for_menu=0,
            prompt_continuation="  ",
            vi_mode=vi,
            completer=self._candidates,
            input_processors=[Apart()],
            complete_while_typing=True,
        )
        wait_for_the_rest(session.app)
        _put_below(session, self._below)
        return session

    def _message(self) -> "StyleAndTextTuples":
        return [("bold", (self._menu or IDLE).prompt), ("", self._answers.told)]

    def _below(self) -> "StyleAndTextTuples":
        """The status; while something runs, its second row is there also when empty, so that the prompt stays put."""
        columns = self._output.get_size().columns - 1
        passing, standing = self._status
        rows = [clip(standing, min(columns, STANDING_COLUMNS))]
        if passing or self._menu is None:
            rows.append(f"  {_end(passing, min(columns, PASSING_COLUMNS) - 2)}")
        return [("fg:ansibrightblack", "\n".join(rows))]


def _put_below(session: "PromptSession[str]", text: "Callable[[], StyleAndTextTuples]") -> None:
    """Rows right below what is typed, with whatever is empty below them."""
    from prompt_toolkit.filters import Always
    from prompt_toolkit.layout import FormattedTextControl, HSplit, VerticalAlign, Window

    session.layout.current_window.dont_extend_height = Always()
    container = session.layout.container
    assert isinstance(container, HSplit)
    container.align = VerticalAlign.TOP
    container.children.append(Window(FormattedTextControl(text), dont_extend_height=True))


@contextmanager
def _in_one_piece(output: "Vt100_Output") -> Iterator[None]:
    """What is written meanwhile reaches the terminal at the end of it."""
    output.flush = lambda: None  # type: ignore[method-assign]  # the library writes after each step
    try:
        yield
    finally:
        del output.flush
        output.flush()


def _end(text: str, columns: int) -> str:
    """The end of a text, in as many columns as there are."""
    text = text[-columns:] if columns > 0 else ""
    while width(text) > columns:
        text = text[1:]
    return text


def _asks(menu: Menu | None) -> bool:
    return menu is not None and menu != IDLE


def _output(out: TextIO, *, colour: bool) -> "Vt100_Output":
    """Without asking the terminal where its cursor is: the answer may be late, or be taken for keys."""
    from prompt_toolkit.output import ColorDepth
    from prompt_toolkit.output.vt100 import Vt100_Output

    output = Vt100_Output.from_pty(out, default_color_depth=None if colour else ColorDepth.MONOCHROME)
    output.enable_cpr = False
    return output
