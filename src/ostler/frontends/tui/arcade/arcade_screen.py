"""The games to play. They pause as soon as a session needs the user."""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult

from ostler.frontends.tui.arcade.games import GAMES, Game, Move
from ostler.frontends.tui.screens.dialog import Dialog
from ostler.frontends.tui.strips import PAINT
from ostler.frontends.tui.widgets.key_hints import KeyHints
from ostler.frontends.tui.widgets.text_rows import TextRows

FRAME_SECONDS = 1 / 12
MOVES: dict[str, Move] = {
    **{"left": "left", "right": "right", "up": "up", "down": "down", "space": "fire"},
    **{"h": "left", "l": "right", "k": "up", "j": "down"},
}


class ArcadeScreen(Dialog[None]):
    """Plays one game; Tab changes to the next. `attention` returns what needs the user, or an empty string."""

    DEFAULT_CSS = """
    ArcadeScreen { align: center middle; background: $background 50%; }
    ArcadeScreen TextRows { width: 100%; background: $background; }
    ArcadeScreen #arcade-head, ArcadeScreen #arcade-foot { height: 1; background: $surface; }
    ArcadeScreen #arcade-field { height: 1fr; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""

    def __init__(self, games: dict[str, Game], attention: Callable[[], str], first: str) -> None:
        """`games` keeps the games that were begun, by name; the first one to begin is `first`."""
        super().__init__()
        self._games = games
        self._attention = attention
        self._game_name = next(iter(games), first)
        self._move: Move = ""
        self._reason = attention()
        self.is_paused = False

    def compose(self) -> ComposeResult:
        yield TextRows(id="arcade-head", margin=1)
        yield TextRows(id="arcade-field")
        yield KeyHints(id="arcade-foot", margin=1)

    def on_mount(self) -> None:
        self.set_interval(FRAME_SECONDS, self._next_frame)
        self._show_help()

    def _show_help(self) -> None:
        keys = (("Esc", "back"), ("arrows", "move"), ("Space", "fire"), ("P", "pause"), ("Tab", "other game"))
        self.query_one(KeyHints).show_hints(keys)

    @property
    def game(self) -> Game:
        return self._games.setdefault(self._game_name, GAMES[self._game_name]())

    def _next_frame(self) -> None:
        reason = self._attention()
        if reason != self._reason:  # only news pauses: a game can also be played between turns
            self._reason = reason
            self.is_paused = self.is_paused or bool(reason)
        field = self.query_one("#arcade-field", TextRows)
        if not self.is_paused and field.size.height:
            self.game.resize(field.size.width, field.size.height)
            self.game.step(self._move)
            self._move = ""
            field.show(self.game.rows())
        state = PAINT(f"  paused: {reason}" if reason else "  paused", "yellow") if self.is_paused else ""
        head = f"{PAINT(self._game_name, 'bold')}  score {self.game.score}{state}"
        self.query_one("#arcade-head", TextRows).show([head])

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key in MOVES:
            self._move = MOVES[event.key]
        elif event.key == "p":
            self.is_paused = not self.is_paused
        elif event.key == "tab":
            names = list(GAMES)
            self._game_name = names[(names.index(self._game_name) + 1) % len(names)]
        elif event.key in ("escape", "ctrl+c", "f3", "q"):
            self.dismiss(None)
