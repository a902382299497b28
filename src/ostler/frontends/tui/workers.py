"""Starts background work of a widget or the app; it is cancelled when that is removed."""

from collections.abc import Callable, Coroutine

from textual.dom import DOMNode
from textual.message import Message

from ostler.core.errors import OstlerError

Work = Callable[[], Coroutine[None, None, None]]


class WorkFailed(Message):
    """Work ended with an error that the user can understand, such as a mistake in a settings file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


def start_work(node: DOMNode, work: Work, group: str, *, exclusive: bool = False) -> None:
    """Start work of a group; with `exclusive`, cancel earlier work of the group.

    An `OstlerError` is reported as `WorkFailed`; any other exception ends the app.
    """

    async def run() -> None:
        try:
            await work()
        except OstlerError as error:
            node.post_message(WorkFailed(str(error)))

    node.run_worker(run, group=group, exclusive=exclusive)  # type: ignore[arg-type]  # the library infers no type
