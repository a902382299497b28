"""The rules of the games, without drawing or time: each step computes the next picture."""

import random
from collections.abc import Callable
from typing import Literal

Move = Literal["", "left", "right", "up", "down", "fire"]


class Game:
    """A game on a field of characters."""

    def __init__(self) -> None:
        self.score = 0
        self._columns = self._rows = 0

    def resize(self, columns: int, rows: int) -> None:
        """Start again on a field of this size, if the size is new."""
        if (columns, rows) != (self._columns, self._rows):
            self._columns, self._rows = max(columns, 12), max(rows, 6)
            self._restart()

    def step(self, move: Move) -> None:
        """Compute the next picture."""
        raise NotImplementedError

    def hint(self) -> Move:
        """Return a good move, for the game that plays by itself."""
        raise NotImplementedError

    def rows(self) -> list[str]:
        """Return the picture."""
        raise NotImplementedError

    def _restart(self) -> None:
        raise NotImplementedError


class Invaders(Game):
    """Invaders come down; the ship shoots them. When they arrive, the game starts again."""

    def __init__(self) -> None:
        super().__init__()
        self._aliens: set[tuple[int, int]] = set()
        self._shots: set[tuple[int, int]] = set()
        self._bombs: set[tuple[int, int]] = set()
        self._ship = self._tick = 0
        self._direction = 1
        self._random = random.Random(7)

    def _restart(self) -> None:
        last, lines = self._columns - 6, max(min(self._rows // 3, 4), 1)
        self._aliens = {(x, y) for y in range(lines) for x in range(2, max(last, 3), 3)}
        self._shots, self._bombs = set(), set()
        self._ship, self._direction, self._tick = self._columns // 2, 1, 0

    def step(self, move: Move) -> None:
        self._tick += 1
        self._move_ship(move)
        self._shots = {(x, y - 1) for x, y in self._shots if y > 0}
        self._bombs = {(x, y + 1) for x, y in self._bombs if y < self._rows - 1}
        self._hit()
        if self._tick % 4 == 0:
            self._march()
            self._hit()
        if self._aliens and self._random.random() < 0.06:
            self._bombs.add(self._random.choice(sorted(self._aliens)))
        if (self._ship, self._rows - 1) in self._bombs:
            self.score = max(self.score - 10, 0)
            self._bombs.clear()
        if not self._aliens or max(y for _, y in self._aliens) >= self._rows - 1:
            self._restart()

    def _move_ship(self, move: Move) -> None:
        step = {"left": -1, "right": 1}.get(move, 0)
        self._ship = min(max(self._ship + step, 0), self._columns - 1)
        if move == "fire" and len(self._shots) < 3:
            self._shots.add((self._ship, self._rows - 1))

    def _hit(self) -> None:
        hit = self._aliens & self._shots
        self.score += len(hit)
        self._aliens -= hit
        self._shots -= hit

    def _march(self) -> None:
        at_edge = any(not 0 <= x + self._direction < self._columns for x, _ in self._aliens)
        if at_edge:
            self._direction = -self._direction
        self._aliens = {(x, y + 1) if at_edge else (x + self._direction, y) for x, y in self._aliens}

    def hint(self) -> Move:
        if not self._aliens:
            return ""
        nearest = min(self._aliens, key=lambda alien: (abs(alien[0] - self._ship), -alien[1]))
        if abs(nearest[0] - self._ship) <= 1 and self._tick % 3 == 0:
            return "fire"
        return "left" if nearest[0] < self._ship else "right" if nearest[0] > self._ship else ""

    def rows(self) -> list[str]:
        field = [[" "] * self._columns for _ in range(self._rows)]
        parts = (("W" if self._tick % 8 < 4 else "M", self._aliens), ("'", self._shots), (".", self._bombs))
        for sign, places in parts:
            for x, y in places:
                if 0 <= y < self._rows and 0 <= x < self._columns:
                    field[y][x] = sign
        if field:
            field[-1][self._ship] = "A"
        return ["".join(row) for row in field]


class Pong(Game):
    """A ball between two paddles; the user has the left one."""

    def __init__(self) -> None:
        super().__init__()
        self._ball = (0.0, 0.0)
        self._speed = (1.0, 0.5)
        self._left = self._right = 0

    def _restart(self) -> None:
        self._left = self._right = self._rows // 2 - 1
        self._serve(1.0)

    def _serve(self, direction: float) -> None:
        self._ball, self._speed = (self._columns / 2, self._rows / 2), (direction, 0.5 if self.score % 2 else -0.5)

    @property
    def _size(self) -> int:
        return max(self._rows // 4, 2)

    def step(self, move: Move) -> None:
        last = self._rows - self._size
        self._left = min(max(self._left + {"up": -1, "down": 1}.get(move, 0), 0), last)
        self._right = min(max(self._right + self._towards(self._right), 0), last)
        x, y = self._ball[0] + self._speed[0], self._ball[1] + self._speed[1]
        if not 0 <= y <= self._rows - 1:
            self._speed = (self._speed[0], -self._speed[1])
            y = min(max(y, 0.0), self._rows - 1.0)
        self._ball = (x, y)
        if x <= 1:
            self._return_ball(self._left, 1.0)
        elif x >= self._columns - 2:
            self._return_ball(self._right, -1.0)

    def _return_ball(self, paddle: int, direction: float) -> None:
        if paddle - 1 <= self._ball[1] <= paddle + self._size:
            self._speed = (direction, self._speed[1])
            self.score += direction > 0
            return
        if direction > 0:
            self.score = 0
        self._serve(-direction)

    def _towards(self, paddle: int) -> int:
        middle = paddle + self._size / 2
        return 1 if self._ball[1] > middle else -1 if self._ball[1] < middle - 1 else 0

    def hint(self) -> Move:
        step = self._towards(self._left)
        return "down" if step > 0 else "up" if step < 0 else ""

    def rows(self) -> list[str]:
        field = [[" "] * self._columns for _ in range(self._rows)]
        for offset in range(self._size):
            field[min(self._left + offset, self._rows - 1)][0] = "┃"
            field[min(self._right + offset, self._rows - 1)][-1] = "┃"
        limits = (self._columns - 1, self._rows - 1)
        x, y = (min(max(round(value), 0), limit) for value, limit in zip(self._ball, limits, strict=True))
        field[y][x] = "●"
        return ["".join(row) for row in field]


GAMES: dict[str, Callable[[], Game]] = {"invaders": Invaders, "pong": Pong}
