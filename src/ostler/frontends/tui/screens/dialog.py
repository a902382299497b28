"""The base of the screens that open above the chat screen."""

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

T = TypeVar("T")


class Dialog(ModalScreen[T]):
    """Closes only itself, and only once: keys that were pressed meanwhile would otherwise close the screen below it."""

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_current else AwaitComplete()
