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

from ostler.core.errors import UsageError
from ostler.frontends.repl.answer_keys import AnswerKeyFilter
from ostler.frontends.repl.console import IDLE_MENU, AnswerMenu, ConsoleEvent, ExitRequested, LineEntered, SteerEntered
from ostler.frontends.repl.key_bindings import make_key_bindings, set_key_timeouts
from ostler.frontends.repl.pastes import PasteStore
from ostler.frontends.repl.prompt_history import is_recallable, open_history
from ostler.frontends.repl.reflow import backspace_crosses_wrap, erase_sequence, extra_rows, terminal_reflows
from ostler.text.sanitise import sanitise
from ostler.text.width import clip, width

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.output.vt100 import Vt100_Output

    from ostler.commands.completion import CompletionSource

FLUSH_DELAY_SECONDS = 0.03
RENDER_LATENCY_SECONDS = 0.05  # what was drawn so short a time ago may not have reached the terminal
SUMMARY_COLUMNS, ACTIVITY_COLUMNS = 120, 80  # so that a window made narrow has rows enough for what they become
MENU_ROWS = 8
RESERVED_ROWS = 5  # the status, the prompt, and what a glance needs to find its place again
OPENING_STATUS = "opening the session …"


class LineEditorConsole:
    """A terminal that can do more than plain lines."""

    reads_while_busy = True
    echoes_input = False
    numbers_menu = False
    has_status = True

    def __init__(
        self, out: TextIO, history: Path | None, *, colour: bool = True, vi: bool = False, bell: bool = False
    ) -> None:
        from ostler.frontends.repl.completer import PromptCompleter

        self.is_sensitive: Callable[[str], bool] = lambda text: False  # what no history may keep
        self._output = _make_output(out, colour=colour)
        self._bell = bell
        self._completer = PromptCompleter()
        self._pastes = PasteStore()
        self._events: asyncio.Queue[ConsoleEvent] = asyncio.Queue()
        self._menu: AnswerMenu | None = IDLE_MENU
        self._status = ("", "")
        self._pending_lines: list[str] = []
        self._flush_timer: asyncio.TimerHandle | None = None
        self._draft = ""
        self._answer_keys = AnswerKeyFilter(
            lambda key: self.inject(LineEntered(key)),
            lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call),
        )
        self._last_key = 0.0
        self._session = self._make_session(history, vi=vi)
        self._session.app.key_processor.before_key_press += self._on_key
        self._session.app.before_render += self._reserve_menu_rows
        self._session.app.after_render += self._on_render
        self._session.default_buffer.on_completions_changed += self._completer.on_completions_changed
        self._rendered_at = 0.0
        self._patch_erase()
        self._patch_render()
        self._run_task: asyncio.Task[None] | None = None
        self._suspend_task: asyncio.Future[None] | None = None
        self._edit_task: asyncio.Future[None] | None = None
        self._file_scan: asyncio.Future[Any] | None = None

    @property
    def page_size(self) -> tuple[int, int]:
        size = self._output.get_size()
        return size.columns, max(size.rows - RESERVED_ROWS, 1)

    # -- out -----------------------------------------------------------------------------------------------------

    def show(self, lines: Sequence[str]) -> None:
        """Soon: lines that come close together are written together."""
        if not lines:
            return
        self._pending_lines += lines
        self._flush_soon()

    def set_status(self, activity: str, summary: str) -> None:
        if (activity, summary) != self._status:
            self._status = (activity, summary)
            self._session.app.invalidate()

    def alert(self, message: str) -> None:
        """The bell, and a notice where the terminal knows how to show one."""
        if self._bell and not self._suspended_for_program:
            self._output.write_raw(f"\x1b]9;{sanitise(message)}\x1b\\\a")
            self._output.flush()

    @property
    def _suspended_for_program(self) -> bool:
        """Whether another program has the terminal for now."""
        return bool(self._session.app._running_in_terminal)

    def _flush_soon(self) -> None:
        if self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(FLUSH_DELAY_SECONDS, self._flush)

    def _flush(self) -> None:
        if self._flush_timer:
            self._flush_timer.cancel()
        self._flush_timer = None
        if self._suspended_for_program and self._pending_lines:
            self._flush_soon()
            return
        text = "".join(f"{line}\n" for line in self._pending_lines)
        self._pending_lines.clear()
        if text:
            self._write_above(text)

    def _write_above(self, text: str) -> None:
        """With the prompt drawn again in the same piece: it would flicker if the terminal showed what is between."""
        app = self._session.app
        try:
            with _batched_output(self._output):
                if app.is_running:
                    app.renderer.erase(leave_alternate_screen=False)
                self._output.write_raw(text)
                app._redraw()
        except OSError:  # the terminal is gone
            self.inject(ExitRequested(1))

    # -- in ------------------------------------------------------------------------------------------------------

    @property
    def menu(self) -> AnswerMenu | None:
        return self._menu

    @property
    def busy(self) -> bool:
        """Whether something runs that could be cancelled."""
        return self._menu != IDLE_MENU

    def set_menu(self, menu: AnswerMenu | None) -> None:
        """An ask lays what is being typed aside, and for a moment takes no key that was meant for that."""
        buffer = self._session.default_buffer
        was_asking, asking = _is_dialog(self._menu), _is_dialog(menu)
        if menu != self._menu or not asking:
            self._answer_keys.reset()
        self._menu = menu
        if menu and menu.answers:
            self._answer_keys.expect_answer()
        if asking and not was_asking:
            self._draft = self._pastes.unfold(buffer.text)
            if self._draft:
                self._answer_keys.ignore_keys_since(self._last_key)
            buffer.reset()
            self._session.app.vi_state.reset()
        elif was_asking and not asking and self._draft:
            self.restore_draft(self._draft)
            self._draft = ""
        self._flush()
        self._session.app.invalidate()

    def restore_draft(self, text: str) -> None:
        buffer = self._session.default_buffer
        buffer.text = self._pastes.fold(text) + (f"\n{buffer.text}" if buffer.text else "")
        buffer.cursor_position = len(buffer.text)

    def paste(self, text: str) -> None:
        """What was pasted, at the cursor."""
        self._session.default_buffer.insert_text(self._pastes.fold(text))

    def set_completion(self, source: "CompletionSource") -> None:
        """Files are looked for at once, so that a large tree is known by the time a mention of one is typed."""
        self._completer.source = source
        self._file_scan = asyncio.ensure_future(source.completions("@", explicit=False))

    def answer(self, key: str) -> None:
        """A key of an ask, empty for any other."""
        self._answer_keys.press(key)

    def reject(self) -> None:
        """Enter, or a paste, where only a key can answer."""
        self._answer_keys.reject()

    def _on_render(self, _: object) -> None:
        self._rendered_at = time.monotonic()
        self._answer_keys.mark_visible()

    def _on_key(self, _: object) -> None:
        self._last_key = time.monotonic()

    async def start(self) -> None:
        """The prompt is drawn when this returns."""
        drawn = asyncio.Event()
        app = self._session.app
        app.after_render += lambda _: drawn.set()
        self.set_status("", OPENING_STATUS)
        self._run_task = asyncio.create_task(self._run(), name="editor")
        await asyncio.wait([self._run_task, wait := asyncio.create_task(drawn.wait())], return_when="FIRST_COMPLETED")
        wait.cancel()

    async def read(self) -> ConsoleEvent:
        return await self._events.get()

    def inject(self, event: ConsoleEvent) -> None:
        self._events.put_nowait(event)

    def send(self, *, steering: bool = False) -> None:
        """Take what is in the editor as a line, or as words for the turn that runs."""
        buffer = self._session.default_buffer
        text = self._pastes.unfold(buffer.text)
        if not _is_dialog(self._menu) and text.strip() and is_recallable(text) and not self.is_sensitive(text):
            self._session.history.append_string(text)
        buffer.reset()
        self._session.app.vi_state.reset()
        self.inject(SteerEntered(text) if steering else LineEntered(text))

    async def edit(self, path: str) -> bool:
        from prompt_toolkit.application import in_terminal
        from prompt_toolkit.application.current import set_app

        from ostler.frontends.repl.external_editor import run_editor

        with set_app(self._session.app):
            async with in_terminal():
                return await run_editor(path)

    def edit_draft(self) -> None:
        """What is being typed, in the person's editor."""
        self._edit_task = asyncio.ensure_future(self._edit_draft())

    async def _edit_draft(self) -> None:
        """An ask that came meanwhile has laid the text aside; what became of it comes back after it."""
        from ostler.frontends.repl.draft_file import edit_text

        buffer, asked = self._session.default_buffer, _is_dialog(self._menu)
        try:
            text = await edit_text(self._pastes.unfold(buffer.text), self.edit)
        except UsageError as error:
            self.show([f"  {sanitise(str(error))}"])
            return
        if _is_dialog(self._menu) and not asked:
            self._draft = text
        else:
            buffer.text = self._pastes.fold(text)
            buffer.cursor_position = len(buffer.text)

    def suspend(self) -> None:
        """Into the background, with the terminal as it was; drawn anew when it comes back."""
        from prompt_toolkit.application import run_in_terminal
        from prompt_toolkit.application.current import set_app

        with set_app(self._session.app):
            self._suspend_task = asyncio.ensure_future(run_in_terminal(self._suspend_process))

    def _suspend_process(self) -> None:
        """By the signal's own effect, which the system withholds where nobody could wake us again."""
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTSTP)
        os.kill(0, signal.SIGTSTP)
        loop.add_signal_handler(signal.SIGTSTP, self.suspend)

    async def aclose(self) -> None:
        if self._edit_task:
            self._edit_task.cancel()
            await asyncio.wait([self._edit_task])
        self._flush()
        if self._run_task is None:
            return
        if self._session.app.is_running:
            self._session.app.exit(result="")
        await asyncio.wait([self._run_task])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        try:
            draft = self._session.default_buffer.text
            await self._session.prompt_async(default=draft, handle_sigint=False, set_exception_handler=False)
        except (EOFError, OSError):
            self.inject(ExitRequested(1))
        finally:
            loop.remove_signal_handler(signal.SIGTSTP)

    def _patch_erase(self) -> None:
        """Wherever the prompt is taken away, also the rows that a narrower window made of what was typed."""
        renderer = self._session.app.renderer
        plain_erase = renderer.erase
        climbing, reflowing = backspace_crosses_wrap(os.environ), terminal_reflows(os.environ)

        def erase(leave_alternate_screen: bool = True) -> None:
            if self._suspended_for_program:
                return  # what stands there is another program's, also when the window changes
            sure = reflowing and not climbing and time.monotonic() - self._rendered_at > RENDER_LATENCY_SECONDS
            more = extra_rows(renderer, self._output.get_size().columns) if sure else 0
            cursor = renderer._cursor_pos
            self._output.write_raw(erase_sequence(cursor.x, cursor.y + more, backspace_wraps=climbing))
            renderer._cursor_pos = type(cursor)(0, 0)
            plain_erase(leave_alternate_screen)

        renderer.erase = erase  # type: ignore[method-assign]  # the library has no other place for it

    def _patch_render(self) -> None:
        """A window may have changed before anybody told us: then nothing on the screen is where it was drawn."""
        renderer = self._session.app.renderer
        plain_render = renderer.render

        def render(*given: Any, **more: Any) -> None:
            if renderer._last_size not in (None, self._output.get_size()):
                renderer.erase(leave_alternate_screen=False)
            plain_render(*given, **more)

        renderer.render = render  # type: ignore[method-assign]

    def _reserve_menu_rows(self, _: object) -> None:
        """Rows for the candidates while there are some, and none of them afterwards."""
        state = self._session.default_buffer.complete_state
        rows = min(len(state.completions) + 1, MENU_ROWS) if state else 0
        if rows < self._session.reserve_space_for_menu:
            self._session.app.renderer.erase(leave_alternate_screen=False)
        self._session.reserve_space_for_menu = rows

    def _make_session(self, history: Path | None, *, vi: bool) -> "PromptSession[str]":
        from prompt_toolkit import PromptSession

        from ostler.frontends.repl.grapheme_clusters import GraphemeProcessor

        session: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            history=open_history(history),
            key_bindings=make_key_bindings(self, self._completer),
            output=self._output,
            erase_when_done=True,
            reserve_space_for_menu=0,
            prompt_continuation="  ",
            vi_mode=vi,
            completer=self._completer,
            input_processors=[GraphemeProcessor()],
            complete_while_typing=True,
        )
        set_key_timeouts(session.app)
        _add_status_window(session, self._status_fragments)
        return session

    def _message(self) -> "StyleAndTextTuples":
        return [("bold", (self._menu or IDLE_MENU).prompt), ("", self._answer_keys.feedback)]

    def _status_fragments(self) -> "StyleAndTextTuples":
        """The status; while something runs, its second row is there also when empty, so that the prompt stays put."""
        columns = self._output.get_size().columns - 1
        passing, standing = self._status
        rows = [clip(standing, min(columns, SUMMARY_COLUMNS))]
        if passing or self._menu is None:
            rows.append(f"  {_clip_start(passing, min(columns, ACTIVITY_COLUMNS) - 2)}")
        return [("fg:ansibrightblack", "\n".join(rows))]


def _add_status_window(session: "PromptSession[str]", text: "Callable[[], StyleAndTextTuples]") -> None:
    """Rows right below what is typed, with whatever is empty below them."""
    from prompt_toolkit.filters import Always
    from prompt_toolkit.layout import FormattedTextControl, HSplit, VerticalAlign, Window

    session.layout.current_window.dont_extend_height = Always()
    container = session.layout.container
    assert isinstance(container, HSplit)
    container.align = VerticalAlign.TOP
    container.children.append(Window(FormattedTextControl(text), dont_extend_height=True))


@contextmanager
def _batched_output(output: "Vt100_Output") -> Iterator[None]:
    """What is written meanwhile reaches the terminal at the end of it."""
    output.flush = lambda: None  # type: ignore[method-assign]  # the library writes after each step
    try:
        yield
    finally:
        del output.flush
        output.flush()


def _clip_start(text: str, columns: int) -> str:
    """The end of a text, in as many columns as there are."""
    text = text[-columns:] if columns > 0 else ""
    while width(text) > columns:
        text = text[1:]
    return text


def _is_dialog(menu: AnswerMenu | None) -> bool:
    return menu is not None and menu != IDLE_MENU


def _make_output(out: TextIO, *, colour: bool) -> "Vt100_Output":
    """Without asking the terminal where its cursor is: the answer may be late, or be taken for keys."""
    from prompt_toolkit.output import ColorDepth
    from prompt_toolkit.output.vt100 import Vt100_Output

    output = Vt100_Output.from_pty(out, default_color_depth=None if colour else ColorDepth.MONOCHROME)
    output.enable_cpr = False
    return output
