"""Starts background work of a widget or the app; it is cancelled when that is removed."""

from collections.abc import Callable, Coroutine

from textual.dom import DOMNode

Work = Callable[[], Coroutine[None, None, None]]


def start_work(node: DOMNode, work: Work, group: str, *, exclusive: bool = False) -> None:
    """Start work of a group; with `exclusive`, cancel earlier work of the group."""
    node.run_worker(work, group=group, exclusive=exclusive)  # type: ignore[arg-type]  # the library infers no type
