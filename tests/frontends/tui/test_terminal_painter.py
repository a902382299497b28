"""What the painter writes, read by a terminal: the screen is always as Textual wants it, with few bytes."""

import random
import re

import pyte
import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from ostler.frontends.tui.painted_app import pieces_of
from ostler.frontends.tui.terminal_painter import TerminalPainter, erases_with_colour

COLUMNS, ROWS = 40, 12
STYLES = [Style(), Style(color="red"), Style(bgcolor="blue"), Style(bold=True, bgcolor="blue"), Style(underline=True)]
WORDS = ["words", " ", "ä", "日本", "    ", "x", "e\u0301", "long text of a row"]


class Terminal:
    """A painter and the terminal that it writes to."""

    def __init__(self):
        self.painter = TerminalPainter(erases_with_colour=True)
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.Stream(self.screen)
        self.rows = [row() for _ in range(ROWS)]
        self.draw(LayoutUpdate([[strip] for strip in self.rows], Region(0, 0, COLUMNS, ROWS)))

    def draw(self, update):
        written = paint(self.painter, update)
        self.stream.feed(written)
        return written

    def change(self, rows, first=0):
        """Draw rows as a region of the full width, as Textual does."""
        self.rows[first : first + len(rows)] = rows
        chops = [{0: strip} for strip in self.rows]
        spans = [(first + number, 0, COLUMNS) for number in range(len(rows))]
        return self.draw(ChopsUpdate(chops, spans, [[COLUMNS]] * ROWS))

    def check(self):
        fresh = pyte.Screen(COLUMNS, ROWS)
        whole = LayoutUpdate([[strip] for strip in self.rows], Region(0, 0, COLUMNS, ROWS))
        painter = TerminalPainter(erases_with_colour=False)
        pyte.Stream(fresh).feed(paint(painter, whole))
        for y in range(ROWS):
            for x in range(COLUMNS):
                shown, wanted = self.screen.buffer[y][x], fresh.buffer[y][x]
                assert shown.data == wanted.data, (x, y, self.screen.display[y], fresh.display[y])
                assert shown.bg == wanted.bg, (x, y)
                assert shown.data == " " or shown.fg == wanted.fg, (x, y)


def paint(painter, update, colours=ColorSystem.STANDARD):
    is_whole = isinstance(update, LayoutUpdate)
    return painter.paint(pieces_of(update), (COLUMNS, ROWS), colours, is_whole=is_whole)


def row(*texts):
    segments = [Segment(text, STYLES[0]) for text in texts]
    return Strip(segments).adjust_cell_length(COLUMNS, STYLES[0])


def random_row(source):
    segments = [Segment(source.choice(WORDS), source.choice(STYLES)) for _ in range(source.randrange(6))]
    return Strip(segments).adjust_cell_length(COLUMNS, source.choice(STYLES))


@pytest.mark.req("TU-7", "TU-10")
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.sampled(every=5)
def test_terminal_shows_what_was_drawn_after_any_changes(seed):
    source, terminal = random.Random(seed), Terminal()
    for _ in range(30):
        first = source.randrange(ROWS - 1)
        count = source.randrange(1, ROWS - first + 1)
        part = terminal.rows[first : first + count]
        match source.randrange(3):
            case 0:  # scrolled up or down
                by = source.randrange(1, 4)
                new = [random_row(source) for _ in range(by)]
                part = [*part, *new][-count:] if source.random() < 0.5 else [*new, *part][:count]
            case 1:
                part = [random_row(source) for _ in part]
            case _:
                part[source.randrange(count)] = random_row(source)
        terminal.change(part, first)
        terminal.check()


@pytest.mark.parametrize("seed", range(10))
def test_part_of_a_row_is_drawn_beside_what_stays(seed):
    source, terminal = random.Random(seed), Terminal()
    terminal.change([row("a" * COLUMNS)] * ROWS)
    for _ in range(20):
        y, x = source.randrange(ROWS), source.randrange(1, 20)
        piece = Strip([Segment("b" * source.randrange(1, 15))])
        end = x + piece.cell_length
        chops = [{x: piece} for _ in range(ROWS)]
        terminal.draw(ChopsUpdate(chops, [(y, x, end)], [[end]] * ROWS))
        before = terminal.rows[y]
        terminal.rows[y] = Strip.join([before.crop(0, x), piece, before.crop(end, COLUMNS)])
        terminal.check()


@pytest.mark.req("TU-7")
def test_new_line_at_the_end_moves_the_rows_above_it():
    terminal = Terminal()
    lines = [row(f"line {number}") for number in range(ROWS + 1)]
    terminal.change(lines[:-1])
    written = terminal.change(lines[1:])
    terminal.check()
    assert written.count("line") == 1
    assert len(written) < 60


@pytest.mark.req("TU-7")
def test_paragraphs_with_empty_rows_between_them_are_moved():
    terminal = Terminal()
    lines = [row(f"line {number}" if number % 2 else "") for number in range(ROWS + 2)]
    terminal.change(lines[:-2])
    written = terminal.change([row(line.text.rstrip()) for line in lines[2:]])
    terminal.check()
    assert written.count("line") == 1
    assert len(written) < 80


def test_growing_line_writes_only_what_is_new():
    terminal = Terminal()
    terminal.change([row("some words")], 3)
    written = terminal.change([row("some words and more")], 3)
    terminal.check()
    assert "some" not in written and len(written) < 30


def test_forgotten_screen_is_drawn_in_full():
    terminal = Terminal()
    terminal.change([row("text")] * ROWS)
    terminal.painter.forget()
    terminal.screen.reset()
    terminal.change([row("text")] * ROWS)
    terminal.check()


def test_background_colour_is_written_if_the_terminal_cannot_erase_with_it():
    blue = Strip([Segment(" " * COLUMNS, Style(bgcolor="blue"))])
    for can_erase, is_written in ((True, False), (False, True)):
        painter = TerminalPainter(erases_with_colour=can_erase)
        update = LayoutUpdate([[blue]] * ROWS, Region(0, 0, COLUMNS, ROWS))
        assert (" " * COLUMNS in paint(painter, update)) is is_written


def test_only_terminals_that_are_known_to_erase_with_colour_do():
    assert erases_with_colour({"TERM": "screen-256color"}) is False
    assert erases_with_colour({"TERM": "tmux-256color"}) is True


def test_without_colours_only_attributes_are_written():
    styled = Strip([Segment("words", Style(color="red", bgcolor="blue", bold=True)), Segment("x" * (COLUMNS - 5))])
    update = LayoutUpdate([[styled]] * ROWS, Region(0, 0, COLUMNS, ROWS))
    written = paint(TerminalPainter(erases_with_colour=True), update, None)
    assert "\x1b[1mwords\x1b[0m" in written
    assert not re.search(r"\x1b\[[\d;]*[34]\d", written)


@pytest.mark.parametrize("text", ["👩\u200d👩\u200d👧", "🇩🇪", "☎\ufe0e", "👍🏽"])
def test_row_whose_width_terminals_dispute_leaves_nothing_of_the_row_before(text):
    terminal = Terminal()
    terminal.change([row("A" * COLUMNS)] * 4)
    written = terminal.change([row(f"{text} b")], 1)
    assert written.index("\x1b[2K") < written.index("b")
    assert "A" not in terminal.screen.display[1]
    assert "\x1b[2K" in terminal.change([row("c")], 1)
    assert "\x1b[2K" not in terminal.change([row("d")], 1)


@pytest.mark.req("TU-4")
def test_terminal_interprets_no_character_of_a_text():
    terminal = Terminal()
    written = terminal.change([row("a\x1b[2J\x1b]0;x\x07\x9b31m\u202eb \u2066c\rd\x08e é 👩\u200d👩")])
    assert re.findall("[\x00-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\x1b[^\\[]|\x1b\\[2J", written) == []
    assert "a[2J]0;x31mb cde é" in terminal.screen.display[0].replace(" b", "b")
