"""Runs one turn or manual command at a time and queues prompts that are typed meanwhile."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine, Set
from typing import Any

from ostler.core.errors import OstlerError
from ostler.core.events import Event, Queued, ToolFinished, TurnEnded, TurnStarted
from ostler.core.prompt import Prompt
from ostler.core.protocols import Session, Turn
from ostler.core.sessions import SetQueue
from ostler.core.tools import ToolCall
from ostler.interaction.input_parser import ShellInput


class TurnQueue:
    """The running turn, manual commands and slash commands of a session, and the queue behind them."""

    def __init__(
        self,
        session: Session,
        on_change: Callable[[], None],
        on_failure: Callable[[str, str], None],
    ) -> None:
        """`on_change` is called when something starts, ends or is added, `on_failure` with a reason and unsent text.

        The frontend calls `start_next` from `on_change` when the next item may start.
        """
        self._session = session
        self._on_change = on_change
        self._on_failure = on_failure
        self._turn: Turn | None = None
        self._remote_turn = session.turn is not None  # continued for an earlier process
        self._tasks: set[asyncio.Task[None]] = set()
        self._result_events: dict[str, asyncio.Event] = {}
        self._queue: deque[Prompt | ShellInput] = deque()
        self._sent: set[str] = set()  # prompts in the queue of the remote side, which starts them
        self._others: tuple[Prompt, ...] = ()  # prompts of other clients in that queue
        self._withdrawn = ""
        self._saved_queue: tuple[str, ...] = tuple(session.state.queued)
        self._saves: set[asyncio.Task[bool]] = set()
        self._closing = False

    @property
    def in_turn(self) -> bool:
        return self._turn is not None or self._remote_turn

    @property
    def may_change_files(self) -> bool:
        """Whether a turn or a manual command that may change files is running."""
        return self.in_turn or bool(self._result_events)

    @property
    def busy(self) -> bool:
        return self.in_turn or bool(self._tasks)

    @property
    def queued(self) -> int:
        """Number of queued items, also of other clients; 0 until the queue is saved."""
        others = self._session.state.queued if self._session.info.keeps_queue else ()
        return 0 if self._saves else max(len(self._queue), len(others))

    def enqueue(self, item: Prompt | ShellInput) -> None:
        """Add an item, which `start_next` starts."""
        self._queue.append(item)
        self._save_queue()
        self._on_change()

    def start_next(self) -> None:
        """Start the first queued item if nothing is running."""
        first = self._queue[0] if self._queue else None
        if not self.busy and first and not (isinstance(first, Prompt) and first.id in self._sent):
            self._start(self._queue.popleft())
            self._save_queue()

    def run_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task that `cancel` can stop."""
        task = asyncio.create_task(coroutine, name="manual command")
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def cancel(self) -> bool:
        """Cancel the turn, also one of the remote side, and all tasks. Return whether anything was running."""
        turn = self._session.turn
        if turn:
            if self._sent:  # before the end of the turn starts the next one
                self._withdrawn = self.drain()
            turn.cancel()
        for task in self._tasks:
            task.cancel()
        return turn is not None or self.busy

    def restore_queue(self) -> str:
        """Return the texts that were queued when the session was last closed, and remove them."""
        if self._session.info.keeps_queue:
            return ""
        text = "\n".join(self._session.state.queued)
        self._save_queue()
        return text

    def drain(self) -> str:
        """Empty the queue and return its texts."""
        texts = [self._withdrawn, *(typed_text(item) for item in self._queue)]
        text, self._withdrawn = "\n".join(filter(None, texts)), ""
        self._queue.clear()
        self._sent.clear()
        self._save_queue()
        return text

    @property
    def queued_texts(self) -> tuple[str, ...]:
        """What was queued here, the oldest first, and by other clients."""
        others = (f"{prompt.who}: {prompt.text}" if prompt.who else prompt.text for prompt in self._others)
        return (*map(typed_text, self._queue), *others)

    def withdraw_last(self) -> str:
        """Remove what was queued last here, or else by another client, and return its text; empty if there is none."""
        if self._queue:
            text = typed_text(self._queue.pop())
            self._save_queue()
        elif self._others:
            *others, prompt = self._others
            self._others, text = tuple(others), prompt.text
            self._apply(SetQueue(withdrawn=(prompt.id,)))
        else:
            return ""
        self._on_change()
        return text

    def on_event(self, event: Event) -> None:
        match event:
            case TurnStarted(turn_id, prompt):
                self._forget({prompt.id})
                self._remote_turn = self._turn is None or self._turn.id != turn_id
            case TurnEnded():
                self._turn, self._remote_turn = None, False
            case Queued(_, prompts):
                if not self._saves:  # else it may be older than what is being saved
                    self._forget(self._sent.difference(prompt.id for prompt in prompts))
                if self._session.info.keeps_queue:
                    self._others = tuple(prompt for prompt in prompts if prompt.id not in self._sent)
            case ToolFinished(result) if result.call_id in self._result_events:
                self._result_events[result.call_id].set()
            case _:
                pass

    def _forget(self, prompt_ids: Set[str]) -> None:
        """Remove prompts that the remote side has started, or that another client has withdrawn."""
        gone = self._sent & prompt_ids
        self._sent -= gone
        kept = [item for item in self._queue if not (isinstance(item, Prompt) and item.id in gone)]
        self._queue = deque(kept)
        self._saved_queue = tuple(map(typed_text, kept)) if gone else self._saved_queue

    async def aclose(self) -> None:
        """Cancel everything and close the session. The saved queue stays for the next start."""
        self._closing = True
        self._queue.clear()
        if self._saves:
            await asyncio.wait(self._saves)
        for task in (tasks := tuple(self._tasks)):
            task.cancel()
        await self._session.aclose()
        if tasks:
            await asyncio.wait(tasks)

    def _start(self, item: Prompt | ShellInput) -> None:
        try:
            if isinstance(item, Prompt):
                self._turn = self._session.start(item)
            else:
                self.run_task(self._run_command(item.command))
        except OstlerError as error:
            self._on_failure(f"not sent: {error}", typed_text(item))

    async def _run_command(self, command: str) -> None:
        """Run a command of the user; it ends when its result was shown."""
        call = ToolCall(new_id(), "bash", {"command": command}, origin="person")
        shown = self._result_events[call.id] = asyncio.Event()
        try:
            await self._session.call(call)
            await shown.wait()
        except OstlerError as error:
            self._on_failure(str(error), "")
        finally:
            del self._result_events[call.id]

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()  # raise unexpected errors
        self._on_change()

    def _save_queue(self) -> None:
        """Save the queue in the session, so that it survives a crash; items that start at once are not saved."""
        queued = tuple(typed_text(item) for item in self._queue) if self.busy else ()
        if queued != self._saved_queue and not self._closing:
            self._saved_queue = queued
            prompts: tuple[Prompt, ...] = ()
            if self._session.info.keeps_queue:
                all_prompts = (item for item in self._queue if isinstance(item, Prompt))
                prompts = tuple(prompt for prompt in all_prompts if self.in_turn or prompt.id in self._sent)
                self._sent = {prompt.id for prompt in prompts}
            self._apply(SetQueue(queued, prompts))

    def _apply(self, change: SetQueue) -> None:
        task = asyncio.create_task(self._session.apply(change), name="queue")
        self._saves.add(task)
        task.add_done_callback(self._on_queue_saved)

    def _on_queue_saved(self, task: asyncio.Task[bool]) -> None:
        self._saves.discard(task)
        if task.cancelled():
            return
        try:
            task.result()  # raise unexpected errors
        except OstlerError as error:
            self._on_failure(f"the queued prompts could not be saved: {error}", "")
        self._on_change()


def typed_text(item: Prompt | ShellInput) -> str:
    """Return the text that was typed for an item."""
    return item.text if isinstance(item, Prompt) else f"!{item.command}"


def new_id() -> str:
    """Return a new unique id."""
    return f"person-{os.urandom(6).hex()}"
