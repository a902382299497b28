"""An input field of one line."""

from textual.widgets import Input


class LineField(Input):
    """Its cursor does not blink, because each change would be written to the terminal."""

    def __init__(self, *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, id=id)
        self.cursor_blink = False
