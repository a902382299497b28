"""An app that writes to the terminal only what changed.

This module, `terminal_driver.py` and `key_parser.py` are the only ones that use undocumented names of Textual, which
documents no way to see the rows of a frame before they are written, or to add a key. They are those of the version that
`pyproject.toml` pins; `tests/frontends/tui/test_painted_app.py` fails if they change.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.driver import Driver
from textual.filter import Monochrome
from textual.screen import Screen
from textual.strip import Strip

from ostler.frontends.tui.terminal_driver import TerminalDriver
from ostler.frontends.tui.terminal_painter import Piece, TerminalPainter, erases_with_colour

COLOUR_SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}


class PaintedApp(App[int]):
    """Draws frames with a `TerminalPainter`, and gives access to the terminal."""

    CSS = """
    TextArea:nocolor .text-area--cursor, TextArea:nocolor .text-area--selection,
    Input:nocolor > .input--cursor, Input:nocolor > .input--selection { text-style: reverse; }
    """  # without colours, nothing else shows the cursor

    def __init__(self) -> None:
        no_colour = os.environ.get("NO_COLOR")
        super().__init__()
        if no_colour is not None:
            os.environ["NO_COLOR"] = no_colour  # Textual removes it, but commands need it too
        # The painter leaves out the colours, and this filter cannot filter the titles of Textual's own borders.
        self._filters = [each for each in self._filters if not isinstance(each, Monochrome)]
        self._painter = TerminalPainter(erases_with_colour=erases_with_colour())
        self.has_mouse = True
        self.is_suspended = False  # another program has the terminal

    def get_driver_class(self) -> type[Driver]:
        return TerminalDriver

    def end_without_terminal(self, status: int) -> None:
        """End the app, because the terminal is gone."""
        self.exit(status)

    def on_mount(self) -> None:
        self.app_suspend_signal.subscribe(self, lambda _: self._suspend_painting())
        self.app_resume_signal.subscribe(self, lambda _: self._resume_painting())

    def _suspend_painting(self) -> None:
        self.is_suspended = True

    def _resume_painting(self) -> None:
        self.is_suspended = False
        self.redraw()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        if self.is_suspended:
            return  # another program has the terminal, and Textual would wait for ever until it is written
        if isinstance(renderable, LayoutUpdate | ChopsUpdate):
            renderable = PaintedUpdate(renderable, self)  # type: ignore[assignment]  # as in Textual
        super()._display(screen, renderable)

    def paint(self, update: CompositorUpdate) -> str:
        """Return what to write so that the terminal shows an update."""
        is_whole = isinstance(update, LayoutUpdate) and update.region.size == self.size
        colours = None if self.no_color else COLOUR_SYSTEMS.get(self.console.color_system or "")
        return self._painter.paint(pieces_of(update), self.size, colours, is_whole=is_whole)

    def redraw(self) -> None:
        """Draw everything again, if another program wrote to the terminal."""
        self._painter.forget()
        self.screen.refresh(layout=True)

    def write_terminal(self, sequence: str) -> None:
        """Write an escape sequence to the terminal."""
        if self._driver is not None and not self.is_suspended:
            self._driver.write(sequence)

    def set_mouse(self, is_on: bool) -> None:
        """Let Textual have the mouse, or leave it to the terminal, which can then select text."""
        driver: Any = self._driver
        self.has_mouse = is_on
        if driver is None or not hasattr(driver, "_disable_mouse_support"):
            return  # without a terminal
        if is_on:
            driver._mouse = True
            driver._enable_mouse_support()
        else:
            driver._disable_mouse_support()
            driver._mouse = False  # Textual would switch it on again after a suspension


class PaintedUpdate(CompositorUpdate):
    """An update that is painted when Textual writes it."""

    def __init__(self, update: CompositorUpdate, app: PaintedApp) -> None:
        self._update = update
        self._app = app

    def render_segments(self, console: Console) -> str:
        return self._app.paint(self._update)


def pieces_of(update: CompositorUpdate) -> Iterator[Piece]:
    """Yield the parts of rows of an update."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            yield Piece(update.region.x, y, Strip.join(list(strips)))
    elif isinstance(update, ChopsUpdate):
        for y, start, end in update.spans:
            yield from _pieces_of_row(y, start, end, update.chops[y], update.chop_ends[y])


def _pieces_of_row(
    y: int, start: int, end: int, chops: Mapping[int, Strip | None], ends: Iterable[int]
) -> Iterator[Piece]:
    for chop_end, (x, strip) in zip(ends, chops.items(), strict=False):
        if strip is not None and x < end and chop_end > start:
            yield Piece(x, y, strip.crop(0, min(chop_end, end) - x))
