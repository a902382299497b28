"""Key bindings of the line editor that differ from the library's defaults."""

from typing import TYPE_CHECKING

from ostler.frontends.repl.console import (
    IDLE_MENU,
    DetailsToggled,
    EscapePressed,
    ExitRequested,
    InterruptRequested,
    NextModeRequested,
    WithdrawRequested,
)

ESCAPE_TIMEOUT_SECONDS = 0.1  # time after Esc in which another key makes it an Alt combination
SEQUENCE_TIMEOUT_SECONDS = 2.0  # maximum pause between keys such as Ctrl-X Ctrl-E

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.filters import Condition, Filter
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from ostler.frontends.repl.completer import PromptCompleter
    from ostler.frontends.repl.line_editor import LineEditorConsole


def make_key_bindings(console: "LineEditorConsole", completer: "PromptCompleter") -> "KeyBindings":
    """Return the bindings for sending, completion, new lines, modes, Ctrl-C, Ctrl-D, Esc, the answers of a dialog."""

    from prompt_toolkit.filters import Condition, completion_is_selected, is_searching
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.keys import Keys

    bindings = KeyBindings()
    choosing = Condition(lambda: console.menu is not None and bool(console.menu.answers))
    writing = ~choosing & ~is_searching

    @bindings.add("enter", filter=writing)
    def _enter(event: "KeyPressEvent") -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            console.send()

    @bindings.add("tab", filter=writing)
    def _complete(event: "KeyPressEvent") -> None:
        completer.select_next(event.current_buffer)

    @bindings.add("enter", filter=writing & completion_is_selected)
    def _accept_candidate(event: "KeyPressEvent") -> None:
        """Accept the selected candidate; the next Enter sends the line."""
        event.current_buffer.complete_state = None
        event.current_buffer.start_completion()

    @bindings.add("escape", "enter", filter=writing)
    @bindings.add("c-j", filter=writing)
    def _new_line(event: "KeyPressEvent") -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add(Keys.BracketedPaste, filter=writing)
    def _paste(event: "KeyPressEvent") -> None:
        console.paste(event.data.replace("\r\n", "\n").replace("\r", "\n"))

    @bindings.add("escape", "s", filter=writing)
    def _steer(event: "KeyPressEvent") -> None:
        console.send(steering=True)

    @bindings.add("escape", "q", filter=writing)
    def _withdraw(event: "KeyPressEvent") -> None:
        console.inject(WithdrawRequested())

    @bindings.add("c-x", "c-e", filter=writing)
    def _edit(event: "KeyPressEvent") -> None:
        console.edit_draft()

    @bindings.add("c-z")
    def _suspend(event: "KeyPressEvent") -> None:
        console.suspend()

    @bindings.add("c-o", filter=~is_searching)
    def _details(event: "KeyPressEvent") -> None:
        console.inject(DetailsToggled())

    _add_mode_key(bindings, console, writing)
    _add_stop_keys(bindings, console)
    _add_cursor_keys(bindings, writing)
    _add_answer_keys(bindings, console, choosing)
    return bindings


def set_key_timeouts(app: "Application[str]") -> None:
    """Use a short timeout after Esc, because terminals send escape sequences at once, and a long one for typed keys."""
    from prompt_toolkit.keys import Keys

    keys = app.key_processor

    def set_timeout(_: object) -> None:
        first = keys.key_buffer[0].key if keys.key_buffer else None
        app.timeoutlen = ESCAPE_TIMEOUT_SECONDS if first == Keys.Escape else SEQUENCE_TIMEOUT_SECONDS

    app.ttimeoutlen = ESCAPE_TIMEOUT_SECONDS
    keys.after_key_press += set_timeout


def _add_mode_key(bindings: "KeyBindings", console: "LineEditorConsole", is_writing: "Filter") -> None:
    from prompt_toolkit.filters import Condition, has_completions

    in_dialog = Condition(lambda: console.menu not in (None, IDLE_MENU))

    @bindings.add("s-tab", filter=is_writing & has_completions)
    def _select_previous(event: "KeyPressEvent") -> None:
        event.current_buffer.complete_previous()

    @bindings.add("s-tab", filter=is_writing & ~has_completions & ~in_dialog)
    def _next_mode(event: "KeyPressEvent") -> None:
        console.inject(NextModeRequested())


def _add_stop_keys(bindings: "KeyBindings", console: "LineEditorConsole") -> None:
    from prompt_toolkit.filters import has_completions, is_searching, vi_insert_mode

    from ostler.frontends.repl.grapheme_clusters import size_after

    @bindings.add("c-c", filter=~is_searching)
    def _interrupt(event: "KeyPressEvent") -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            console.inject(InterruptRequested())

    @bindings.add("c-d", filter=~is_searching)
    def _leave(event: "KeyPressEvent") -> None:
        if not event.current_buffer.text:
            console.inject(ExitRequested())
        else:
            event.current_buffer.delete(size_after(event.current_buffer.document))

    @bindings.add("escape", filter=~is_searching & ~vi_insert_mode & ~has_completions)
    def _escape(event: "KeyPressEvent") -> None:
        """Go back in a dialog, or cancel the turn; without effect if nothing is running."""

        if console.busy:
            console.inject(EscapePressed())

    @bindings.add("escape", filter=has_completions)
    def _close(event: "KeyPressEvent") -> None:
        event.current_buffer.cancel_completion()


def _add_cursor_keys(bindings: "KeyBindings", is_writing: "Filter") -> None:
    """Move over and delete multi-code-point characters as one; other characters use the library's bindings."""
    from prompt_toolkit.application.current import get_app
    from prompt_toolkit.filters import Condition, vi_navigation_mode

    from ostler.frontends.repl.grapheme_clusters import size_after, size_before

    before = is_writing & Condition(lambda: size_before(get_app().current_buffer.document) > 1)
    after = is_writing & Condition(lambda: size_after(get_app().current_buffer.document) > 1)

    @bindings.add("left", filter=before)
    @bindings.add("c-b", filter=before & ~vi_navigation_mode)
    @bindings.add("h", filter=before & vi_navigation_mode)
    def _left(event: "KeyPressEvent") -> None:
        event.current_buffer.cursor_position -= size_before(event.current_buffer.document)

    @bindings.add("right", filter=after)
    @bindings.add("c-f", filter=after & ~vi_navigation_mode)
    @bindings.add("l", filter=after & vi_navigation_mode)
    def _right(event: "KeyPressEvent") -> None:
        event.current_buffer.cursor_position += size_after(event.current_buffer.document)

    @bindings.add("backspace", filter=before & ~vi_navigation_mode)
    def _delete_before(event: "KeyPressEvent") -> None:
        event.current_buffer.delete_before_cursor(size_before(event.current_buffer.document))

    @bindings.add("delete", filter=after)
    @bindings.add("x", filter=after & vi_navigation_mode)
    def _delete(event: "KeyPressEvent") -> None:
        event.current_buffer.delete(size_after(event.current_buffer.document))


def _add_answer_keys(bindings: "KeyBindings", console: "LineEditorConsole", is_choosing: "Condition") -> None:
    from prompt_toolkit.keys import Keys

    @bindings.add(Keys.Any, filter=is_choosing)
    def _answer(event: "KeyPressEvent") -> None:
        key = event.data.lower()
        answers = (known for known, _ in console.menu.answers) if console.menu else ()
        console.answer_keys.press(key if key in answers else "", event.data)

    @bindings.add("enter", filter=is_choosing)
    @bindings.add("c-j", filter=is_choosing)
    def _confirm(event: "KeyPressEvent") -> None:
        console.answer_keys.confirm()

    @bindings.add("backspace", filter=is_choosing)
    def _delete(event: "KeyPressEvent") -> None:
        console.delete_answer()

    @bindings.add(Keys.BracketedPaste, filter=is_choosing)
    def _pasted(event: "KeyPressEvent") -> None:
        """Pasted text is never an answer."""
        console.answer_keys.add_text(event.data.replace("\r\n", "\n").replace("\r", "\n"))
