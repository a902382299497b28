"""The game that plays by itself in the panel while the agent works."""

from textual.timer import Timer

from ostler.frontends.tui.arcade.games import GAMES, Game
from ostler.frontends.tui.strips import PAINT
from ostler.frontends.tui.widgets.text_rows import TextRows

FRAME_SECONDS = 1 / 8


class WaitingGame(TextRows):
    """Runs only while it is visible and the agent works."""

    def __init__(self, name: str) -> None:
        super().__init__(id="waiting-game")
        self._game: Game | None = GAMES[name]() if name in GAMES else None
        self._timer: Timer | None = None

    def run(self, is_waiting: bool) -> None:
        """Start or stop the game."""
        is_running = is_waiting and self._game is not None
        self.display = is_running
        if is_running and self._timer is None:
            self._timer = self.set_interval(FRAME_SECONDS, self._next_frame)
        elif not is_running and self._timer:
            self._timer.stop()
            self._timer = None

    def on_resize(self) -> None:
        if self._timer and not self.lines:
            self._next_frame()

    @property
    def is_playing(self) -> bool:
        return self._timer is not None

    def _next_frame(self) -> None:
        if self._game is None or not self.size.height or self.app.screen is not self.screen:
            return
        self._game.resize(self.size.width, self.size.height)
        self._game.step(self._game.hint())
        self.show([PAINT(row, "dim") for row in self._game.rows()])
