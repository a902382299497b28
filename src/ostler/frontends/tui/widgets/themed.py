"""The base of the widgets that draw rows in the colours of the theme."""

from typing import ClassVar

from rich.style import Style
from textual import events
from textual.widget import Widget

from ostler.frontends.tui.palettes import palette_of
from ostler.frontends.tui.strips import StripMaker


class ThemedWidget(Widget):
    """Has a `StripMaker` with the colours of the app's theme."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._maker = StripMaker(Style(), {})

    def on_mount(self) -> None:
        self.use_theme()
        self.app.theme_changed_signal.subscribe(self, lambda _: self.use_theme())

    def use_theme(self) -> None:
        """Take the colours of the app's theme."""
        self._maker = StripMaker(*palette_of(self))
        self.refresh()


class ScrolledWidget(ThemedWidget):
    """Can also be scrolled with the wheel of the mouse."""

    WHEEL_ROWS: ClassVar[int] = 3

    def scroll_rows(self, count: int) -> None:
        """Scroll by rows: down if positive."""
        raise NotImplementedError

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-self.WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(self.WHEEL_ROWS)
