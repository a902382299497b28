"""prompt_toolkit console: multi-line editing, history, paste, and a status line below the prompt.

One application runs from start to end, so that keys typed between two prompts are neither lost nor echoed by the
terminal. Output goes above it: the prompt is erased, lines are written, and the prompt is drawn again. The status is
below the prompt, so that the cursor is at the start of everything that must be erased, also after the window was
resized.
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
from ostler.frontends.repl.console import IDLE_MENU, ConsoleEvent, ExitRequested, LineEntered, SteerEntered
from ostler.frontends.repl.key_bindings import make_key_bindings, set_key_timeouts
from ostler.frontends.repl.reflow import backspace_crosses_wrap, erase_sequence, extra_rows, terminal_reflows
from ostler.frontends.repl.saved_draft import SavedDraft
from ostler.interaction.answer_keys import AnswerKeyFilter
from ostler.interaction.answer_menu import AnswerMenu
from ostler.interaction.pastes import PasteStore
from ostler.interaction.prompt_history import is_recallable, prepare_history_file
from ostler.text.sanitise import sanitise
from ostler.text.width import clip, width

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History
    from prompt_toolkit.output.vt100 import Vt100_Output

    from ostler.interaction.completion import CompletionSource

FLUSH_DELAY_SECONDS = 0.03
RENDER_LATENCY_SECONDS = 0.05  # drawn output may not have reached the terminal before this
SUMMARY_COLUMNS, ACTIVITY_COLUMNS = 120, 80  # limits, so that a narrowed window has enough rows
MENU_ROWS = 8
LATE_ENTER_SECONDS = 1.0  # after a dialog closed, Enter does not send the text that it interrupted
RESERVED_ROWS = 5  # the status, the prompt, and some lines of the previous page
OPENING_STATUS = "opening the session …"


class LineEditorConsole:
    """A console with line editing, for terminals that support it."""

    reads_while_busy = True
    echoes_input = False
    numbers_menu = False
    has_status = True

    def __init__(
        self, out: TextIO, history: Path | None, *, colour: bool = True, vi: bool = False, bell: bool = False
    ) -> None:
        from ostler.frontends.repl.completer import PromptCompleter

        self.is_sensitive: Callable[[str], bool] = lambda text: False  # such text is not stored in the history
        self._output = _make_output(out, colour=colour)
        self._bell = bell
        self._completer = PromptCompleter()
        self._pastes = PasteStore()
        self._events: asyncio.Queue[ConsoleEvent] = asyncio.Queue()
        self.menu: AnswerMenu | None = IDLE_MENU
        self._status = ("", "")
        self._pending_lines: list[str] = []
        self._flush_timer: asyncio.TimerHandle | None = None
        self._draft = SavedDraft()
        self._restored_draft, self._restored_at = "", 0.0
        self.answer_keys = AnswerKeyFilter(
            lambda key: self.inject(LineEntered(key)),
            lambda text: self._draft.add(text),
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

    # -- output --------------------------------------------------------------------------------------------------

    def show(self, lines: Sequence[str]) -> None:
        """Show lines after a short delay, so that lines in quick succession are written together."""
        if not lines:
            return
        self._pending_lines += lines
        self._flush_soon()

    def set_status(self, activity: str, summary: str) -> None:
        if (activity, summary) != self._status:
            self._status = (activity, summary)
            self._session.app.invalidate()

    def alert(self, message: str) -> None:
        """Ring the bell and, in terminals that support it, show a notification."""
        if self._bell and not self._suspended_for_program:
            self._output.write_raw(f"\x1b]9;{sanitise(message)}\x1b\\\a")
            self._output.flush()

    @property
    def _suspended_for_program(self) -> bool:
        """Whether another program, such as an editor, is using the terminal."""
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
        """Write text above the prompt and draw it again in one write, so that it does not flicker."""
        app = self._session.app
        try:
            with _batched_output(self._output):
                if app.is_running:
                    app.renderer.erase(leave_alternate_screen=False)
                self._output.write_raw(text)
                app._redraw()
        except OSError:  # the terminal is gone
            self.inject(ExitRequested(1))

    # -- input ---------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether something is running or open that can be cancelled."""
        return self.menu != IDLE_MENU

    def set_menu(self, menu: AnswerMenu | None) -> None:
        """Set the menu. A dialog saves the typed text and restores it afterwards."""
        was_asking, asking = _is_dialog(self.menu), _is_dialog(menu)
        if menu != self.menu or not asking:
            self.answer_keys.reset()
        self.menu = menu
        typed = self._save_draft() if asking and (not was_asking or (menu and menu.answers)) else False
        if was_asking and not asking:
            self._return_draft()
        if menu and menu.answers:
            self.answer_keys.note_keys_elsewhere(self._last_key, has_text=typed)
            self.answer_keys.expect_answer(menu.confirmed_keys, dict(menu.answers), quick=menu.quick)
        self._flush()
        self._session.app.invalidate()

    def _save_draft(self) -> bool:
        """Save the text of the editor, and clear it. Return whether there was some."""
        buffer = self._session.default_buffer
        typed = bool(buffer.text)
        self._draft.save(buffer.document, self._pastes.expand)
        buffer.reset()
        self._session.app.vi_state.reset()
        return typed

    def _return_draft(self) -> None:
        """Put the saved text back into the editor, with the cursor where it was."""
        self.answer_keys.forget_text()
        if not self._draft:
            return
        buffer, draft = self._session.default_buffer, self._draft
        typed = f"\n{buffer.text}" if buffer.text else ""
        self.restore_draft(draft.text)
        if buffer.text == draft.text + typed:  # not folded
            buffer.cursor_position -= len(draft.after + typed)
        self._draft = SavedDraft()
        self._restored_draft, self._restored_at = buffer.text, time.monotonic()

    def restore_draft(self, text: str) -> None:
        buffer = self._session.default_buffer
        buffer.text = self._pastes.fold(text) + (f"\n{buffer.text}" if buffer.text else "")
        buffer.cursor_position = len(buffer.text)

    def paste(self, text: str) -> None:
        """Insert pasted text at the cursor."""
        self._session.default_buffer.insert_text(self._pastes.add(text))

    def set_completion(self, source: "CompletionSource") -> None:
        """Set the source and start scanning files, so that a large tree is known before the first mention."""
        self._completer.source = source
        self._file_scan = asyncio.ensure_future(source.completions("@", explicit=False))

    def delete_answer(self) -> None:
        """Handle Backspace while only a key can answer: delete what was typed last."""
        if not self.answer_keys.delete_key():
            self._draft.delete_before_cursor()

    def _on_render(self, _: object) -> None:
        self._rendered_at = time.monotonic()
        self.answer_keys.mark_visible()

    def _on_key(self, _: object) -> None:
        self._last_key = time.monotonic()

    async def start(self) -> None:
        """Start the editor and return when the prompt is drawn."""
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
        """Send the text of the editor as a line or, if `steering`, to the running turn."""
        buffer = self._session.default_buffer
        if buffer.text == self._restored_draft != "" and time.monotonic() - self._restored_at < LATE_ENTER_SECONDS:
            return  # Enter was meant for the dialog
        text = self._pastes.expand(buffer.text)
        if not _is_dialog(self.menu) and text.strip() and is_recallable(text) and not self.is_sensitive(text):
            self._session.history.append_string(text)
        buffer.reset()
        self._session.app.vi_state.reset()
        pasted = self._pastes.text_with_mentions
        self.inject(SteerEntered(text, pasted) if steering else LineEntered(text, pasted))

    async def edit(self, path: str) -> bool:
        from prompt_toolkit.application import in_terminal
        from prompt_toolkit.application.current import set_app

        from ostler.interaction.external_editor import run_editor

        with set_app(self._session.app):
            async with in_terminal():
                return await run_editor(path)

    def edit_draft(self) -> None:
        """Open the typed text in the user's editor."""
        self._edit_task = asyncio.ensure_future(self._edit_draft())

    async def _edit_draft(self) -> None:
        """Edit the text. If a dialog opened meanwhile, the text is restored after it."""
        from ostler.interaction.external_editor import edit_text

        buffer, was_dialog = self._session.default_buffer, _is_dialog(self.menu)
        try:
            text = await edit_text(self._pastes.expand(buffer.text), self.edit)
        except UsageError as error:
            self.show([f"  {sanitise(str(error))}"])
            return
        if _is_dialog(self.menu) and not was_dialog:
            self._draft = SavedDraft(text)
        else:
            buffer.text = self._pastes.fold(text)
            buffer.cursor_position = len(buffer.text)

    def suspend(self) -> None:
        """Suspend the process with a restored terminal; the prompt is drawn again when it continues."""
        from prompt_toolkit.application import run_in_terminal
        from prompt_toolkit.application.current import set_app

        with set_app(self._session.app):
            self._suspend_task = asyncio.ensure_future(run_in_terminal(self._suspend_process))

    def _suspend_process(self) -> None:
        """Stop with SIGTSTP's default action, which the system ignores if no shell could continue the process."""
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
        """Make erasing the prompt also erase the additional rows of text that a narrower window rewrapped."""
        renderer = self._session.app.renderer
        plain_erase = renderer.erase
        backspace_wraps, reflows = backspace_crosses_wrap(os.environ), terminal_reflows(os.environ)

        def erase(leave_alternate_screen: bool = True) -> None:
            if self._suspended_for_program:
                return  # the screen belongs to the other program
            settled = time.monotonic() - self._rendered_at > RENDER_LATENCY_SECONDS
            rewrapped = reflows and not backspace_wraps and settled
            rows = extra_rows(renderer, self._output.get_size().columns) if rewrapped else 0
            cursor = renderer._cursor_pos
            self._output.write_raw(erase_sequence(cursor.x, cursor.y + rows, backspace_wraps=backspace_wraps))
            renderer._cursor_pos = type(cursor)(0, 0)
            plain_erase(leave_alternate_screen)

        renderer.erase = erase  # type: ignore[method-assign]  # the library has no hook for it

    def _patch_render(self) -> None:
        """Erase the prompt before drawing if the window size changed and no signal arrived yet."""
        renderer = self._session.app.renderer
        plain_render = renderer.render

        def render(*args: Any, **kwargs: Any) -> None:
            if renderer._last_size not in (None, self._output.get_size()):
                renderer.erase(leave_alternate_screen=False)
            plain_render(*args, **kwargs)

        renderer.render = render  # type: ignore[method-assign]

    def _reserve_menu_rows(self, _: object) -> None:
        """Reserve rows for completion candidates only while there are some."""
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
        return [("bold", (self.menu or IDLE_MENU).prompt), ("", self.answer_keys.feedback)]

    def _status_fragments(self) -> "StyleAndTextTuples":
        """Return the status. While something is running it always has two rows, so that the prompt does not move."""
        columns = self._output.get_size().columns - 1
        activity, summary = self._status
        rows = [clip(summary, min(columns, SUMMARY_COLUMNS))]
        if activity or self.menu is None:
            rows.append(f"  {_clip_start(activity, min(columns, ACTIVITY_COLUMNS) - 2)}")
        return [("fg:ansibrightblack", "\n".join(rows))]


def open_history(path: Path | None) -> "History":
    """Return the history of a file or, without a path, of this run only."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if path is None:
        return InMemoryHistory()
    prepare_history_file(path)
    return FileHistory(path)


def _add_status_window(session: "PromptSession[str]", text: "Callable[[], StyleAndTextTuples]") -> None:
    """Add a window directly below the typed text."""
    from prompt_toolkit.filters import Always
    from prompt_toolkit.layout import FormattedTextControl, HSplit, VerticalAlign, Window

    session.layout.current_window.dont_extend_height = Always()
    container = session.layout.container
    assert isinstance(container, HSplit)
    container.align = VerticalAlign.TOP
    container.children.append(Window(FormattedTextControl(text), dont_extend_height=True))


@contextmanager
def _batched_output(output: "Vt100_Output") -> Iterator[None]:
    """Flush everything that is written in the block in one write at its end."""
    output.flush = lambda: None  # type: ignore[method-assign]  # the library flushes after each step
    try:
        yield
    finally:
        del output.flush
        output.flush()


def _clip_start(text: str, columns: int) -> str:
    """Return the end of a text that fits into the columns."""
    text = text[-columns:] if columns > 0 else ""
    while width(text) > columns:
        text = text[1:]
    return text


def _is_dialog(menu: AnswerMenu | None) -> bool:
    return menu is not None and menu != IDLE_MENU


def _make_output(out: TextIO, *, colour: bool) -> "Vt100_Output":
    """Create the output without cursor position requests: answers may be late or be taken for key presses."""
    from prompt_toolkit.output import ColorDepth
    from prompt_toolkit.output.vt100 import Vt100_Output

    output = Vt100_Output.from_pty(out, default_color_depth=None if colour else ColorDepth.MONOCHROME)
    output.enable_cpr = False
    return output
