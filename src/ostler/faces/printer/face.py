"""The headless face: one prompt, no questions, an exit status that says how it went."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ostler.faces.printer.outputs import Output
from ostler.faces.printer.summary import Summary, Tally
from ostler.vocabulary.errors import Fault, OstlerError
from ostler.vocabulary.events import TurnEnded
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.seams import House, Reading, Session, Turn
from ostler.vocabulary.sessions import EndReason, Opening

if TYPE_CHECKING:
    from ostler.faces.printer.fitting import Fitting

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Make = Callable[[Session], Awaitable[Prompt]]


class Printer:
    """Plays one prompt and prints what happens; never asks, never reads a terminal."""

    def __init__(
        self,
        opening: Opening,
        prompt: Prompt | Make,
        output: Output,
        timeout: float | None = None,
        fitting: "Fitting | None" = None,
    ) -> None:
        """`prompt` may be made of what the session tells, once it is open."""
        self._opening = opening
        self._prompt = prompt
        self._output = output
        self._timeout = timeout
        self._fitting = fitting
        self._tally = Tally()
        self._turn: Turn | None = None
        self._task: asyncio.Task[Any] | None = None
        self._stopped_for: EndReason | None = None

    async def run(self, house: House) -> int:
        """The exit status; however it ends, the output is told how."""
        self._task = asyncio.current_task()
        with _Stops(self._stop, self._timeout):
            try:
                summary = await self._play(house)
            except asyncio.CancelledError:
                if not self._stopped_for:
                    raise
                summary = self._tally.stopped(self._stopped_for)
            except OstlerError as error:
                if self._output.records:
                    self._output.close(self._tally.failed(error))
                raise
        self._output.close(summary)
        return summary.exit

    async def _play(self, house: House) -> Summary:
        session = await house.open(self._opening)
        self._tally.session = session.id
        reading = session.subscribe(session.opened_at)
        try:
            return await self._turns(session, reading)
        finally:
            reading.close()
            await session.aclose()

    async def _turns(self, session: Session, reading: Reading) -> Summary:
        prompt = self._prompt if isinstance(self._prompt, Prompt) else await self._prompt(session)
        while True:
            ended = await self._one(session.start(prompt), reading)
            if self._fitting is None or ended.reason != "done":
                return self._tally.ended(ended)
            more = self._fitting.again(self._tally.answer)
            if not more:
                return self._tally.ended(_unfit(ended, self._fitting.fault), self._fitting.value)
            prompt = Prompt(f"{prompt.id}-again", (Text(more),))

    async def _one(self, turn: Turn, reading: Reading) -> TurnEnded:
        self._turn = turn
        async for envelope in reading:
            self._tally.hear(envelope)
            self._output.hear(envelope)
            if isinstance(envelope.event, TurnEnded) and envelope.event.turn_id == turn.id:
                break
        return await turn.wait()

    def _stop(self, reason: EndReason) -> None:
        """The turn ends with everything kept; before there is one, the whole run does."""
        if self._turn:
            self._turn.cancel(reason)
        elif self._task:
            self._stopped_for = reason
            self._task.cancel()


def _unfit(ended: TurnEnded, fault: str) -> TurnEnded:
    if not fault:
        return ended
    told = Fault("output_schema", f"the answer does not fit the schema: {fault}", "ask for less, or loosen the schema")
    return TurnEnded(ended.turn_id, "failed", told, ended.limit)


class _Stops:
    """Stops a run: on Ctrl-C, SIGTERM, a closed terminal, and when its time is up."""

    def __init__(self, stop: Callable[[EndReason], None], timeout: float | None) -> None:
        self._stop = stop
        self._timeout = timeout
        outlives = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # `nohup`
        self._heard = [number for number in _SIGNALS if number != signal.SIGHUP or not outlives]
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        for number in self._heard:
            self._loop.add_signal_handler(number, self._stop, "cancelled")
        self._deadline = self._loop.call_later(self._timeout, self._stop, "timeout") if self._timeout else None

    def __exit__(self, *_: object) -> None:
        for number in self._heard:
            self._loop.remove_signal_handler(number)
        if self._deadline:
            self._deadline.cancel()
