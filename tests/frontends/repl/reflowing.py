"""A terminal emulator that rewraps lines when it becomes narrower, as tmux, VTE and most others do."""

import pyte

SCROLLBACK = 1000


class Reflowing(pyte.HistoryScreen):
    """With `climbing`, backspaces move to the start of a wrapped line, as in tmux."""

    def __init__(self, columns: int, rows: int, *, climbing: bool) -> None:
        super().__init__(columns, rows, history=SCROLLBACK)
        self._climbing = climbing
        self._wrapped: set[int] = set()  # rows that continue in the next one

    def narrow(self, columns: int) -> None:
        """Rewrap all rows; the cursor stays at its character."""
        rows = [*(self._cells(row) for row in self.history.top), *(self._cells(self.buffer[y]) for y in self._used())]
        at = len(self.history.top) + self.cursor.y
        made: list[list[pyte.screens.Char]] = []
        wrapped, cursor = set(), (0, 0)
        for number, cells in enumerate(rows):
            pieces = [cells[start : start + columns] for start in range(0, len(cells) or 1, columns)]
            if number == at:
                down = min(self.cursor.x // columns, len(pieces) - 1)
                cursor = len(made) + down, min(self.cursor.x - down * columns, columns - 1)
            wrapped |= set(range(len(made), len(made) + len(pieces) - 1))
            made += pieces
        gone = max(len(made) - self.lines, 0)
        self._put(made, gone, columns)
        self._wrapped = {row - gone for row in wrapped}
        self.cursor.y, self.cursor.x = cursor[0] - gone, cursor[1]

    def backspace(self) -> None:
        if self._climbing and self.cursor.x == 0 and self.cursor.y - 1 in self._wrapped:
            self.cursor.y, self.cursor.x = self.cursor.y - 1, self.columns - 1
        else:
            super().backspace()

    def text(self) -> list[str]:
        """Return scrollback and screen without empty lines at the end."""
        past = ["".join(row[x].data for x in range(self.columns)) for row in self.history.top]
        return "\n".join(line.rstrip() for line in (*past, *self.display)).rstrip().split("\n")

    def _used(self) -> range:
        filled = [y for y in range(self.lines) if self._cells(self.buffer[y])]
        return range(max([self.cursor.y, *filled]) + 1)

    def _cells(self, row) -> list[pyte.screens.Char]:
        end = max((x + 1 for x, cell in row.items() if cell.data.strip()), default=0)
        return [row[x] for x in range(min(end, self.columns))]

    def _put(self, rows: list[list[pyte.screens.Char]], gone: int, columns: int) -> None:
        self.reset()
        self.history.top.clear()
        self.resize(columns=columns)
        for row in rows[:gone]:
            self.history.top.append(self._line(row))
        for y, row in enumerate(rows[gone:]):
            self.buffer[y] = self._line(row)

    def _line(self, cells: list[pyte.screens.Char]):
        line = pyte.screens.StaticDefaultDict(self.default_char)
        line.update(enumerate(cells))
        return line
