"""What the engine itself costs: a step without the model's time, a turn of ten calls, a long history made anew."""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import cast

from ostler.backends.engine.backend import Engine
from ostler.backends.engine.guests.limits import Limits
from ostler.backends.engine.history import History
from ostler.journal.records import ListPast
from ostler.models.openai_request import Habits, chat_body
from ostler.models.words import CallChunk, Chunk, Finished, Request, TextChunk, Usage
from ostler.testing.fake_tool import FakeTool
from ostler.testing.stagehand import open_session, play
from ostler.vocabulary.events import Envelope, Event, MessageDone, ToolFinished, TurnStarted
from ostler.vocabulary.message import Called, Message
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.seams import Ground
from ostler.vocabulary.tools import ToolCall, ToolResult
from ostler.workspace.ground import Workspace

Row = tuple[str, str, str, str]
STEP_BUDGET_MS, HISTORY_BUDGET_MS = 2.0, 50.0
MESSAGES = 5_000


class Talker:
    """Calls a tool so often, then answers; it takes no time to think."""

    name = "talker"
    context_limit = 1_000_000

    def __init__(self, calls: int) -> None:
        self._left = calls
        self._made = 0

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        self._made += 1
        yield TextChunk("I look at the next one.")
        if self._left:
            self._left -= 1
            yield CallChunk(f"call-{self._made}", "probe", json.dumps({"path": f"src/file{self._made}.py"}))
        yield Usage(100 * self._made, 10)
        yield Finished("calls" if self._left else "stop")

    async def aclose(self) -> None: ...


def rows(repeats: int) -> Iterator[Row]:
    """Markdown rows: what, Ostler, beside, budget."""
    short, long = _least(repeats, lambda: _turn(10)), _least(repeats, lambda: _turn(200))
    yield ("a turn of ten calls, no model, CPU", f"{short:.1f} ms", "in process, journal in memory", "")
    step = (long - short) / 190
    yield ("one step more, no model, CPU", f"{step:.2f} ms", "average of 190", _kept(step, STEP_BUDGET_MS))
    past = _long_past()
    made = _least(repeats, lambda: _spent(lambda: History().follow(past).said))
    yield (f"history of {MESSAGES:,} messages", f"{made:.0f} ms", "folded anew", _kept(made, HISTORY_BUDGET_MS))
    request = Request("Be good.", History().follow(past).said)
    written = _least(repeats, lambda: _spent(lambda: chat_body("m", request, Habits(), {})))
    yield ("· and written as a request", f"{written:.0f} ms", "OpenAI's form", "")


def _turn(calls: int) -> float:
    async def tool(params: object, context: object) -> str:
        return "a line of code\n" * 20

    async def whole() -> float:
        with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
            probe, limits = FakeTool("probe", tool, effects=False), Limits(steps=calls + 10)
            model = Talker(calls)
            engine = Engine(
                make_model=lambda name: model, tools=lambda: [probe.spec], system=lambda: "Be good.", limits=limits
            )
            session = await open_session(engine, [probe], cast("Ground", Workspace(folder)))
            begun = time.process_time()
            _, ended = await play(session, "look at all of them")
            spent = (time.process_time() - begun) * 1000
            await session.aclose()
        if ended.reason != "done":
            raise SystemExit(f"the turn ended as it should not: {ended}")
        return spent

    return asyncio.run(whole())


def _long_past() -> ListPast:
    return ListPast(Envelope(seq, 0.0, event) for seq, event in enumerate(_events(), 1))


def _events() -> Iterator[Event]:
    for number in range(MESSAGES // 5):
        yield TurnStarted(f"t{number}", Prompt(f"p{number}", (Text("please go on with the work " * 5),)))
        for part in (1, 2):
            call = ToolCall(f"c{number}-{part}", "read", {"path": "src/file.py"}, raw='{"path": "src/file.py"}')
            yield MessageDone(Message(f"m{number}-{part}", (Text("I look."), Called(call))))
            yield ToolFinished(ToolResult(call.id, "ok", "line of code\n" * 100))


def _spent(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


def _least(repeats: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(repeats))


def _kept(value: float, budget: float) -> str:
    return f"{'within' if value <= budget else '**over**'} {budget:g} ms"
