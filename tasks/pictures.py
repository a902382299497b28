"""`python -m tasks.pictures`: generate the pictures of the docs from the real output of the program."""

import os
import pty
import re
import sys
from html import escape
from itertools import groupby
from pathlib import Path

import pyte

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "demo.svg"
COLUMNS, LINES = 100, 120
COLOURS = {
    "default": "#d7dae0",
    "red": "#f07178",
    "green": "#a6cc70",
    "brown": "#e6b450",
    "blue": "#6cb6ff",
    "cyan": "#5ccfe6",
}

# Replace spaces, which SVG would collapse, and symbols that some fonts lack.
FOR_FONTS = str.maketrans({" ": "\u00a0", "⏺": "●", "⎿": "└"})


def record(command: list[str]) -> str:
    """Run a command in a terminal and return its output."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(LINES))
        os.environ.pop("NO_COLOR", None)
        os.execv(command[0], command)
    chunks = []
    try:
        while chunk := os.read(fd, 65536):
            chunks.append(chunk)
    except OSError:
        pass  # the terminal closes when the program ends
    os.waitpid(pid, 0)
    return b"".join(chunks).decode()


def screen_rows(printed: str) -> list[list[pyte.screens.Char]]:
    """Return the printed text as rows of coloured characters, without empty rows at the end."""
    screen = pyte.Screen(COLUMNS, LINES)
    pyte.Stream(screen).feed(printed)
    rows = [[screen.buffer[y][x] for x in range(COLUMNS)] for y in range(LINES)]
    while rows and not "".join(char.data for char in rows[-1]).strip():
        rows.pop()
    return rows


def draw(rows: list[list[pyte.screens.Char]]) -> str:
    """Return the rows as an SVG picture of a terminal."""
    height = 18 * len(rows) + 48
    body = "\n".join(_row(row, 40 + 18 * number) for number, row in enumerate(rows))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{height}" viewBox="0 0 880 {height}" '
        f'role="img" aria-label="ostler demo in a terminal">\n'
        f'<rect width="860" height="{height}" rx="10" fill="#1b1f27"/>\n'
        '<circle cx="20" cy="16" r="5" fill="#f07178"/><circle cx="38" cy="16" r="5" fill="#e6b450"/>'
        '<circle cx="56" cy="16" r="5" fill="#a6cc70"/>\n'
        f'<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, monospace" font-size="14">\n{body}\n</g>\n</svg>\n'
    )


def _row(row: list[pyte.screens.Char], y: int) -> str:
    spans = []
    for style, run in groupby(row, key=lambda char: (char.fg, char.bold)):
        text = "".join(char.data for char in run).translate(FOR_FONTS)
        colour, bold = COLOURS.get(style[0], COLOURS["default"]), ' font-weight="bold"' if style[1] else ""
        spans.append(f'<tspan fill="{colour}"{bold}>{escape(text)}</tspan>')
    return f'<text x="16" y="{y + 14}">{"".join(spans)}</text>'


def demo_picture() -> str:
    """Run the recorded demo and return its picture, with a fixed name for the temporary folder."""
    printed = record([sys.executable, "-P", "-m", "ostler", "demo", "--recording"])
    return draw(screen_rows(re.sub(r"/\S*/ostler-demo-\w+", "/tmp/ostler-demo", printed)))


def words(svg: str) -> list[str]:
    """Return the words of a picture without test durations, to compare pictures."""
    return re.sub(r"in\s\d+\.\d+s", "in 0.0s", re.sub(r"<[^>]+>", "", svg)).split()


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(demo_picture(), encoding="utf-8")
