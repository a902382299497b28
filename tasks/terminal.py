"""A program in a terminal of its own, whose screen can be read and drawn as an SVG picture."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from types import TracebackType
from typing import Self

import pyte
from pyte.screens import Char

TIMEOUT_SECONDS = 30.0
CALM_SECONDS = 5.0
CELL_WIDTH, CELL_HEIGHT, FONT_SIZE, MARGIN, TITLE_HEIGHT = 8.43, 18, 14, 14, 34
FOREGROUND, BACKGROUND = "#d7dae0", "#1b1f27"
COLOURS = {
    "red": "#f07178",
    "green": "#a6cc70",
    "brown": "#e6b450",
    "blue": "#6cb6ff",
    "cyan": "#5ccfe6",
}
# Replace symbols that some fonts lack, and spaces, which SVG would collapse.
FOR_FONTS = str.maketrans({" ": "\u00a0", "⏺": "●", "⎿": "└"})
Rows = Sequence[Sequence[Char]]


class ProgramTerminal:
    """A program on a pseudo-terminal. `send` types, `wait_for` reads the screen."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str, size: tuple[int, int]) -> None:
        """`size` is columns and rows."""
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        terminal = {**env, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._process = subprocess.Popen(
            command, env=terminal, cwd=cwd, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """The visible text."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def rows(self) -> list[list[Char]]:
        """The visible cells."""
        screen = self._screen
        return [[screen.buffer[y][x] for x in range(screen.columns)] for y in range(screen.lines)]

    def send(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, *texts: str) -> None:
        """Wait until the screen has all of these texts."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while not all(text in self.text for text in texts):
            if time.monotonic() > end:
                raise SystemExit(f"never saw {texts!r}:\n{self.text}")
            self.read(0.2)

    def wait_until_calm(self) -> None:
        """Wait until nothing was drawn for a moment, but not for long."""
        end = time.monotonic() + CALM_SECONDS
        while self.read(0.6) and time.monotonic() < end:
            pass

    def wait_for_end(self) -> None:
        """Read everything until the program ends."""
        while self._process.poll() is None or self.read(0.1):
            self.read(0.1)

    def read(self, seconds: float) -> bool:
        """Read what the program writes within some time. Return whether it wrote anything."""
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            self._stream.feed(os.read(self._master, 65536))
        except OSError:
            return False  # the program ended
        return True


def draw(rows: Rows, title: str) -> str:
    """Return the rows as an SVG picture of a terminal window."""
    columns = max(map(len, rows))
    width, height = round(columns * CELL_WIDTH + 2 * MARGIN), len(rows) * CELL_HEIGHT + TITLE_HEIGHT + MARGIN
    boxes = "".join(_boxes(row, number) for number, row in enumerate(rows))
    lines = "\n".join(_line(row, number) for number, row in enumerate(rows))
    frame = BACKGROUND if rows[0][0].bg == "default" else f"#{rows[0][0].bg}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">\n'
        f'<rect width="{width}" height="{height}" rx="10" fill="{frame}"/>\n'
        '<circle cx="20" cy="16" r="5" fill="#f07178"/><circle cx="38" cy="16" r="5" fill="#e6b450"/>'
        f'<circle cx="56" cy="16" r="5" fill="#a6cc70"/>\n{boxes}\n'
        f'<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, monospace" font-size="{FONT_SIZE}">\n'
        f"{lines}\n</g>\n</svg>\n"
    )


def _boxes(row: Sequence[Char], number: int) -> str:
    """Return the backgrounds of a row, as wide as possible each."""
    boxes, column = [], 0
    for background, run in groupby(row, key=lambda char: _colours(char)[1]):
        count = len(list(run))
        if background != BACKGROUND:
            x, y = MARGIN + column * CELL_WIDTH, TITLE_HEIGHT + number * CELL_HEIGHT
            boxes.append(
                f'<rect x="{x:.1f}" y="{y}" width="{count * CELL_WIDTH + 0.3:.1f}" height="{CELL_HEIGHT + 0.3}" '
                f'fill="{background}"/>'
            )
        column += count
    return "".join(boxes)


def _line(row: Sequence[Char], number: int) -> str:
    spans, column = [], 0
    for (colour, bold, italic), run in groupby(row, key=lambda c: (_colours(c)[0], c.bold, c.italics)):
        text = "".join(char.data for char in run)
        shown = text.strip()
        if shown:
            style = ' font-weight="bold"' * bold + ' font-style="italic"' * italic
            x = MARGIN + (column + text.index(shown)) * CELL_WIDTH
            spans.append(f'<tspan x="{x:.1f}" fill="{colour}"{style}>{escape(shown.translate(FOR_FONTS))}</tspan>')
        column += len(text)
    return f'<text y="{TITLE_HEIGHT + number * CELL_HEIGHT + 13}">{"".join(spans)}</text>' if spans else ""


def _colours(char: Char) -> tuple[str, str]:
    """Return the colours of the text and the background."""
    front, back = _hex(char.fg, FOREGROUND), _hex(char.bg, BACKGROUND)
    return (back, front) if char.reverse else (front, back)


def _hex(colour: str, default: str) -> str:
    if colour == "default":
        return default
    return COLOURS.get(colour) or f"#{colour}"
