"""The dialog for approval requests and questions. It shows the first open one until it is answered or withdrawn."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from ostler.core.display import DisplayDiff
from ostler.frontends.tui.screens.dialog import Dialog
from ostler.frontends.tui.session_controller import SessionController
from ostler.frontends.tui.strips import PAINT
from ostler.frontends.tui.widgets.line_field import LineField
from ostler.frontends.tui.widgets.prompt_field import PromptField
from ostler.frontends.tui.widgets.scroll_rows import ScrollRows
from ostler.frontends.tui.widgets.text_rows import TextRows
from ostler.interaction.answer_keys import AnswerKeyFilter
from ostler.interaction.answer_menu import AnswerMenu
from ostler.interaction.approval_form import ApprovalForm
from ostler.interaction.question_form import QuestionForm
from ostler.rendering.asks import render_ask, render_field, render_hunk, render_question
from ostler.rendering.measure import count_columns
from ostler.rendering.wrapping import wrap
from ostler.text.width import width

CLICK_DELAY_SECONDS = 0.5  # a click so soon after the dialog appeared was meant for something else
SCROLL_HINT = "scroll to the end first (PgDn)"
LOW_ROWS = 24  # a window with fewer rows has no gap in the dialog, and the dialog may cover the cards
CARD_ROWS = 2
WIDE_COLUMNS = 110  # from this width, diffs are shown in two columns at first


class AnswerRows(TextRows):
    """The answers, one in each row; a click chooses one."""

    class Chosen(Message):
        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Chosen(event.y))


class RequestScreen(Dialog[None]):
    """Shows the first open request of a session. Other keys than answers go to the draft."""

    DEFAULT_CSS = """
    RequestScreen { align: center bottom; background: $background 40%; }
    RequestScreen > Vertical { height: auto; max-height: 100%; background: $surface; border-top: heavy $warning;
        border-title-color: $warning; border-title-style: bold; }
    RequestScreen > Vertical.dangerous { border-top: heavy $error; border-title-color: $error; }
    RequestScreen ScrollRows { background: $surface; padding: 0 1; }
    RequestScreen TextRows { background: $surface; height: 1; }
    RequestScreen AnswerRows { margin-top: 1; }
    RequestScreen.low AnswerRows { margin-top: 0; }
    RequestScreen Input, RequestScreen Input:focus { border: none; height: 1; padding: 0 1; background: $panel; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""

    def __init__(
        self,
        controller: SessionController,
        prompt: PromptField,
        tell_rows: Callable[[int], None],
        passed_keys: Mapping[str, str],
        do_action: Callable[[str], Awaitable[None]],
    ) -> None:
        """`tell_rows` receives how many rows of the window the dialog covers; `passed_keys` are actions by key."""
        super().__init__()
        self._do_action = do_action
        self._passed_keys = passed_keys
        self._controller = controller
        self._prompt = prompt
        self._tell_rows = tell_rows
        self._draft = ""
        self._two_columns: bool | None = None
        self._step = ("", 0)  # the shown request, and its step
        self._menu: AnswerMenu | None = None
        self._hides_answers = False
        self._visible_at = float("inf")
        self._hint = ""
        self._is_ready = False
        self._rows: list[tuple[str, str]] = []  # the rows of the answers, each with its key
        self.keys = AnswerKeyFilter(
            controller.answer,
            self._add_to_draft,
            lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call),
        )

    def compose(self) -> ComposeResult:
        with Vertical():
            yield ScrollRows(id="request")
            yield AnswerRows(id="answers")
            yield LineField(id="answer-text")
            yield TextRows(id="feedback", margin=2)

    def on_mount(self) -> None:
        self._is_ready = True
        self.keys.note_keys_elsewhere(self._prompt.last_key, has_text=bool(self._prompt.text))
        self.update_request()

    def on_unmount(self) -> None:
        self.keys.reset()
        self._prompt.insert_draft(self._draft)

    def close(self) -> None:
        """Close the dialog without an answer, because another session is shown."""
        self._is_ready = False
        if self.app.screen is self:
            self.dismiss(None)

    def on_screen_resume(self) -> None:
        if not self._is_ready and self.is_mounted:
            self.dismiss(None)
        elif self._menu:
            self.update_request()

    # -- content -------------------------------------------------------------------------------------------------

    def update_request(self) -> None:
        """Show the first request and its current step, or close."""
        first = self._controller.requests.first
        if first is None:
            self.close()
            return
        if not self._is_ready or self._controller.requests.is_first_answered:
            return
        ask_id, form = first
        is_new = self._step[0] != ask_id
        if self._step != (step := (ask_id, self._controller.requests.steps)):
            self._step, self._menu = step, form.menu()
            self._show_form(form, self._menu, is_new=is_new)

    def _show_form(self, form: ApprovalForm | QuestionForm, menu: AnswerMenu, *, is_new: bool) -> None:
        self.keys.reset()
        self._hint = ""
        answers, field = self.query_one(AnswerRows), self.query_one(Input)
        answers.display, field.display = bool(menu.answers), not menu.answers
        self._show_title(form)
        self._lay_out(form, menu)
        self._show_feedback()
        if menu.answers:
            self.set_focus(None)
            self.keys.expect_answer(menu.confirmed_keys, dict(menu.answers), quick=menu.quick)
        else:
            field.value, field.placeholder = "", menu.prompt.strip()
            field.focus()
        if is_new:
            self._visible_at = float("inf")
        self.call_after_refresh(self._mark_visible)

    def _show_title(self, form: ApprovalForm | QuestionForm) -> None:
        dialog = self.query_one(Vertical)
        is_dangerous = isinstance(form, ApprovalForm) and form.event.once_only
        dialog.set_class(is_dangerous, "dangerous")
        titles = ("dangerous: needs your approval each time", "needs your approval")
        dialog.border_title = titles[not is_dangerous] if isinstance(form, ApprovalForm) else "question"

    def _lay_out(self, form: ApprovalForm | QuestionForm, menu: AnswerMenu) -> None:
        """Give the answers the rows they need, and the request the rest; it can be scrolled.

        In a low window, the answers that need all of a long request to be seen have no rows until it was.
        """
        lines, body = self._form_lines(form), self.query_one("#request", ScrollRows)
        body.by_words = not _shows_diff(form)
        self.set_class(self._is_low, "low")
        needed = body.count_rows(lines, max(self.size.width, 20) - 2)
        harmless = [answer for answer in menu.answers if self._is_harmless(answer[0])]
        self._rows = self._rows_of(harmless, menu)
        self._hides_answers = self._is_low and needed > self._body_rows > 0 < len(harmless)
        if not self._hides_answers:
            self._rows = self._rows_of(menu.answers, menu)
        self._place(needed)
        body.show(lines)

    def _place(self, needed: int) -> None:
        """Set the heights, for a request of so many rows."""
        answers, height = self.query_one(AnswerRows), min(needed, self._body_rows)
        self.query_one("#request").styles.height = height
        answers.styles.height = len(self._rows)
        answers.show([row for _, row in self._rows])
        self._tell_rows(height + self._used_rows)

    @property
    def _is_low(self) -> bool:
        return self.size.height < LOW_ROWS

    @property
    def _used_rows(self) -> int:
        """The rows of the answers, with the border, the last row and the gap."""
        return max(len(self._rows), 1) + (2 if self._is_low else 3)

    @property
    def _body_rows(self) -> int:
        """How many rows of the request fit."""
        return max(self.size.height - self._used_rows - (0 if self._is_low else CARD_ROWS), 2)

    def _reveal_answers(self) -> None:
        """Show all answers, now that the end of the request was seen."""
        body = self.query_one("#request", ScrollRows)
        if self._hides_answers and self._menu and body.seen_end:
            self._hides_answers = False
            self._rows = self._rows_of(self._menu.answers, self._menu)
            self._place(body.row_count)
            self._visible_at = time.monotonic()  # a click was meant for the row that was here before

    def on_resize(self) -> None:
        """Lay out the dialog for the new size, without taking keys for answers again."""
        first = self._controller.requests.first
        if self._menu and first and first[0] == self._step[0]:
            self._lay_out(first[1], self._menu)

    def on_scroll_rows_changed(self) -> None:
        self.keys.drop_refused_key()
        self._reveal_answers()
        self._show_feedback()

    def _mark_visible(self) -> None:
        self._visible_at = min(self._visible_at, time.monotonic())
        self.keys.mark_visible()
        self.query_one("#request", ScrollRows).scroll_rows(0)
        self._show_feedback()

    def _form_lines(self, form: ApprovalForm | QuestionForm) -> list[str]:
        if isinstance(form, QuestionForm):
            field = render_field(form.field_description, form.field_choices, form.error, PAINT)
            return [*render_question(form.question, PAINT), *field]
        if form.hunks:
            return render_hunk(form.hunks.current, form.hunks.last_choice, PAINT)
        return render_ask(form.event, PAINT, side_by_side=self.size.width - 6 if self._shows_two_columns else 0)

    @property
    def _shows_two_columns(self) -> bool:
        return self.size.width >= WIDE_COLUMNS if self._two_columns is None else self._two_columns

    def _rows_of(self, answers: Iterable[tuple[str, str]], menu: AnswerMenu) -> list[tuple[str, str]]:
        return [row for key, label in answers for row in self._answer_rows(key, label, menu)]

    def _answer_rows(self, key: str, label: str, menu: AnswerMenu) -> list[tuple[str, str]]:
        """Return the rows of an answer, each with its key. A label is never cut off."""
        room = max(self.size.width, 20) - 8
        enter = "  then Enter" if count_columns(label) + 12 <= room else "\u00a0↵"
        enter = enter if key in menu.confirmed_keys else ""
        rows = [row[at : at + room] for row in wrap(f"{label}{enter}", room) for at in range(0, len(row), room)]
        first, *more = rows or [""]
        first = first.removesuffix(enter) + PAINT(enter, "dim") if enter and first.endswith(enter) else first
        head = f"  {PAINT(f' {key} ', 'bold', 'cyan')} "
        return [(key, head + first), *((key, f"{' ' * 6}{row}") for row in more)]

    def _show_feedback(self) -> None:
        is_visible = self._visible_at <= time.monotonic()
        waiting, form = len(self._controller.requests) - 1, self._controller.requests.first
        more = self.query_one("#request", ScrollRows).rows_below
        columns = self.size.width - 4
        feedback = self._hint or self.keys.feedback
        feedback = self.keys.short_feedback if width(feedback) > columns else feedback
        then = ", then allow it" if self._hides_answers else ""
        parts = [
            PAINT(feedback, "bold") if feedback else "",
            PAINT(f"▼ {more} more rows (PgDn){then}", "yellow") if more else "",
            PAINT(f"{waiting} more request{'s' * (waiting > 1)}", "dim") if waiting else "",
            PAINT("Esc goes back" if self._controller.requests.can_go_back else "Esc cancels the turn", "dim"),
            PAINT("Tab: other diff view", "dim") if is_visible and form and _has_views(form[1]) else "",
        ]
        self.query_one("#feedback", TextRows).show([_join_fitting(filter(None, parts), columns)])

    # -- answers -------------------------------------------------------------------------------------------------

    def _add_to_draft(self, text: str) -> None:
        self._draft += text

    def _go_back(self) -> None:
        """Show the step before; the message that was being written becomes part of the draft."""
        field = self.query_one(Input)
        self._add_to_draft(field.value if field.display else "")
        self._controller.go_back()

    def _may_answer(self, key: str) -> bool:
        """Return whether everything was visible that the answer allows."""
        return self._is_harmless(key) or self.query_one("#request", ScrollRows).seen_end

    def _is_harmless(self, key: str) -> bool:
        first = self._controller.requests.first
        return first is not None and isinstance(first[1], ApprovalForm) and key in first[1].harmless_keys()

    async def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and self._controller.requests.can_go_back:
            event.stop()
            self._go_back()
        elif event.key in ("escape", "ctrl+c"):
            event.stop()
            self._controller.interrupt()
        elif event.key in self._passed_keys:
            event.stop()
            await self._do_action(self._passed_keys[event.key])
        elif self._scroll(event.key):
            event.stop()
        elif isinstance(self.focused, Input):
            return
        elif event.key == "tab":
            event.stop()
            event.prevent_default()
            self._toggle_columns()
        else:
            self._press(event)
        self._show_feedback()

    def _press(self, event: events.Key) -> None:
        menu = self._menu
        if menu is None or not menu.answers:
            return
        event.stop()
        event.prevent_default()
        self._hint = ""
        if event.key in ("enter", "ctrl+j"):
            self.keys.confirm()
        elif event.key == "backspace":
            if not self.keys.delete_key():
                self._draft = self._draft[:-1]
        elif event.is_printable and event.character:
            key = event.character.lower()
            key = key if key in dict(menu.answers) else ""
            self.keys.press(key, event.character, "" if not key or self._may_answer(key) else SCROLL_HINT)

    def _scroll(self, key: str) -> bool:
        body = self.query_one("#request", ScrollRows)
        steps = {"up": -1, "down": 1}
        if key in steps:
            body.scroll_rows(steps[key])
        elif key in ("pageup", "pagedown"):
            body.page(1 if key == "pagedown" else -1)
        elif key in ("home", "end"):
            body.scroll_rows(10**9 if key == "end" else -(10**9))
        else:
            return False
        return True

    def _toggle_columns(self) -> None:
        first = self._controller.requests.first
        if first and isinstance(first[1], ApprovalForm):
            self._two_columns = not self._shows_two_columns
            self._show_form(first[1], first[1].menu(), is_new=False)

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text is never an answer."""
        if not isinstance(self.focused, Input):
            event.stop()
            self.keys.add_text(event.text.replace("\r\n", "\n").replace("\r", "\n"))

    def on_answer_rows_chosen(self, event: AnswerRows.Chosen) -> None:
        event.stop()
        if event.row >= len(self._rows):
            return
        key = self._rows[event.row][0]
        if time.monotonic() - self._visible_at < CLICK_DELAY_SECONDS:
            return
        if not self._may_answer(key):
            self._hint = SCROLL_HINT
            self._show_feedback()
            return
        self.keys.discard_key()
        self._controller.answer(key)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._controller.answer(event.value)


def _shows_diff(form: ApprovalForm | QuestionForm) -> bool:
    if isinstance(form, QuestionForm):
        return False
    return any(isinstance(block, DisplayDiff) for block in form.event.permission.preview.blocks)


def _has_views(form: ApprovalForm | QuestionForm) -> bool:
    """Return whether the diff can be shown in one or two columns; a single hunk has one column."""
    return _shows_diff(form) and not (isinstance(form, ApprovalForm) and form.hunks)


def _join_fitting(parts: Iterable[str], columns: int) -> str:
    """Join the parts that fit into a row, in their order."""
    shown = ""
    for part in parts:
        joined = f"{shown}{PAINT(' · ', 'dim')}{part}" if shown else part
        shown = joined if not shown or count_columns(joined) <= columns else shown
    return shown
