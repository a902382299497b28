"""The base of the dialogs above the chat screen."""

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Result = TypeVar("Result")


class Dialog(ModalScreen[Result]):
    """A dialog that closes once. A key that comes before it has disappeared must not close the screen below it."""

    def __init__(self) -> None:
        super().__init__()
        self._is_closed = False

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        if self._is_closed or not self.is_current:
            return AwaitComplete()
        self._is_closed = True
        return super().dismiss(result)
