"""The messages of a session's clients: each starts one turn, waits for its turn, or steers the running one."""

import asyncio
import os
import time
from typing import TYPE_CHECKING, Literal

from ostler.core.errors import OstlerError
from ostler.core.prompt import Prompt, PromptContent, TextContent
from ostler.core.protocols import Session, Turn
from ostler.core.sessions import SetQueue, Steer
from ostler.frontends.server.turn_metadata import received_prompts, undelivered_prompts
from ostler.wire.client_frames import UserMessageFrame
from ostler.wire.frames import MAX_ID
from ostler.wire.frames_shared import QueueItem
from ostler.wire.server_frames import ErrorMessage, MessageAccepted, QueueChanged

if TYPE_CHECKING:
    from ostler.frontends.server.hub import SessionHub

AcceptedStatus = Literal["started", "queued", "steered", "duplicate"]


class MessageQueue:
    """Starts the turns of a session one after the other. The queue is in the log, so it survives a restart."""

    def __init__(self, hub: "SessionHub") -> None:
        self.prompts: list[Prompt] = []
        self._hub = hub
        self._seen: set[str] = set()
        self._traces: dict[str, str] = {}
        self._watcher: asyncio.Task[None] | None = None

    def load(self, session: Session) -> None:
        """Read the queue of a session that was just opened, and continue it."""
        self._seen, queued = received_prompts(session.records())
        self.prompts = list(queued)
        if session.turn:
            self._watch(session, session.turn)
        elif self.prompts or session.state.undelivered:
            self._watcher = asyncio.create_task(self._start_next(session), name="message queue")

    def stop(self) -> None:
        """Start no more turns; the queue stays in the log."""
        if self._watcher:
            self._watcher.cancel()
            self._watcher = None

    def items(self) -> tuple[QueueItem, ...]:
        return tuple(QueueItem(prompt.id, prompt.text[:4000], prompt.who) for prompt in self.prompts)

    async def receive(self, message: UserMessageFrame, user: str) -> MessageAccepted | ErrorMessage:
        """Start a turn with a message, or queue it. The same id is used once."""
        hub, message_id = self._hub, message.client_message_id
        if len(message_id) > MAX_ID:
            return ErrorMessage(hub.id, f"clientMessageId has more than {MAX_ID} characters", "bad_message")
        session = await hub.open_session()
        if message_id in self._seen:
            return self._repeated(session, message_id)
        prompt = make_prompt(message, user)
        if not prompt.blocks:
            return ErrorMessage(hub.id, "the message is empty", "empty_message")
        if len(self.prompts) >= hub.config.queue:
            return ErrorMessage(hub.id, f"{len(self.prompts)} messages wait already", "queue_full", 5.0)
        self._seen.add(prompt.id)
        self._traces[prompt.id] = message.trace_id
        return await self._place(session, prompt, message)

    def _repeated(self, session: Session, message_id: str) -> MessageAccepted:
        """Return where a message is that was received before: in the queue, in the running turn, or done."""
        running = session.state.turn
        turn_id = running.turn_id if running and running.prompt.id == message_id else ""
        position = next((n for n, prompt in enumerate(self.prompts, 1) if prompt.id == message_id), 0)
        return MessageAccepted(self._hub.id, message_id, "duplicate", position, turn_id)

    async def withdraw(self, message_id: str) -> bool:
        """Remove a waiting message. Return False if it does not wait."""
        session = await self._hub.open_session()
        left = [prompt for prompt in self.prompts if prompt.id != message_id]
        if len(left) == len(self.prompts):
            return False
        self.prompts = left
        await self._save(session)
        return True

    async def _place(self, session: Session, prompt: Prompt, message: UserMessageFrame) -> MessageAccepted:
        if session.turn is None and not self.prompts and not self._is_starting:
            accepted = self._accepted(prompt, "started", self._start(session, prompt))
            await session.wait_saved()  # what is accepted is not lost by a crash
            return accepted
        if message.delivery == "steer" and (turn := session.turn) is not None and await session.apply(Steer(prompt)):
            self._traces.pop(prompt.id, None)
            return self._accepted(prompt, "steered", turn.id)
        self.prompts.append(prompt)
        await self._save(session)
        if session.turn is None and not self._is_starting and self._hub.session is session:
            self._watcher = asyncio.create_task(self._start_next(session), name="message queue")
        return self._accepted(prompt, "queued")

    def _accepted(self, prompt: Prompt, status: AcceptedStatus, turn_id: str = "") -> MessageAccepted:
        position = len(self.prompts) if status == "queued" else 0
        trace = self._hub.trace_of(turn_id) if turn_id else self._traces.get(prompt.id, "")
        return MessageAccepted(self._hub.id, prompt.id, status, position, turn_id, trace)

    @property
    def _is_starting(self) -> bool:
        return self._watcher is not None and not self._watcher.done()

    def _start(self, session: Session, prompt: Prompt) -> str:
        turn_id = self._hub.start_turn(session, prompt, self._traces.pop(prompt.id, ""))
        assert session.turn is not None
        self._watch(session, session.turn)
        return turn_id

    def _watch(self, session: Session, turn: Turn) -> None:
        began = time.monotonic()

        async def wait() -> None:
            ended = await turn.wait()
            self._hub.log_turn(ended, time.monotonic() - began)
            await self._start_next(session)

        self._watcher = asyncio.create_task(wait(), name="message queue")

    async def _start_next(self, session: Session) -> None:
        steered = undelivered_prompts(session.records(), session.state.undelivered)
        if not (steered or self.prompts) or session.turn or self._hub.session is not session:
            return
        prompt = steered[-1] if steered else self.prompts.pop(0)  # those before the last one are given to the same turn
        try:
            self._start(session, prompt)  # before it leaves the stored queue, so that a crash does not lose it
        except OstlerError as error:
            self._hub.publish(ErrorMessage(self._hub.id, error.fault.message, "turn_failed"))
        if not steered:
            await self._save(session)

    async def _save(self, session: Session) -> None:
        texts = tuple(prompt.text for prompt in self.prompts)
        await session.apply(SetQueue(texts, tuple(self.prompts)))
        await session.wait_saved()
        self._hub.publish(QueueChanged(self._hub.id, self.items()))


def make_prompt(message: UserMessageFrame, user: str) -> Prompt:
    """Return the prompt of a message."""
    blocks: tuple[PromptContent, ...] = message.blocks
    if not blocks:
        text = (TextContent(message.content),) if message.content.strip() else ()
        blocks = (*text, *message.images)
    message_id = message.client_message_id or os.urandom(8).hex()
    return Prompt(message_id, blocks, target=message.target, who=user, notes=message.notes)
