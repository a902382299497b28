"""The engine without a model: one step, a turn of ten calls, building a long history."""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import cast

from ostler.backends.engine.backend import Engine
from ostler.backends.engine.history import History
from ostler.backends.engine.plugins.limits import TurnLimits
from ostler.core.events import Envelope, Event, MessageDone, ToolFinished, TurnStarted
from ostler.core.message import CallPart, Message
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Workspace
from ostler.core.tools import ToolCall, ToolResult
from ostler.journal.records import ListRecords
from ostler.models.model_types import (
    CallChunk,
    ModelClientDefaults,
    ModelRequest,
    ReplyChunk,
    ReplyFinished,
    TextChunk,
    Usage,
)
from ostler.models.openai_request import ServerQuirks, chat_body
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace

Row = tuple[str, str, str, str]
STEP_BUDGET_MS, HISTORY_BUDGET_MS = 2.0, 50.0
MESSAGES = 5_000


class InstantModel(ModelClientDefaults):
    """A model that makes a number of calls and then answers, without delay."""

    name = "talker"
    context_limit = 1_000_000

    def __init__(self, calls: int) -> None:
        self._calls_left = calls
        self._call_count = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        self._call_count += 1
        yield TextChunk("I look at the next one.")
        if self._calls_left:
            self._calls_left -= 1
            yield CallChunk(f"call-{self._call_count}", "probe", json.dumps({"path": f"src/file{self._call_count}.py"}))
        yield Usage(100 * self._call_count, 10)
        yield ReplyFinished("calls" if self._calls_left else "stop")

    async def aclose(self) -> None: ...


def rows(repeats: int) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget."""
    short, long = _minimum(repeats, lambda: _turn_cpu_ms(10)), _minimum(repeats, lambda: _turn_cpu_ms(200))
    yield ("turn of ten calls, without a model, CPU", f"{short:.1f} ms", "in process, journal in memory", "")
    step = (long - short) / 190
    yield (
        "one more step, without a model, CPU",
        f"{step:.2f} ms",
        "average of 190",
        _budget_verdict(step, STEP_BUDGET_MS),
    )
    records = _long_records()
    built = _minimum(repeats, lambda: _cpu_ms(lambda: History().follow(records).messages))
    yield (
        f"history of {MESSAGES:,} messages",
        f"{built:.0f} ms",
        "built from all events",
        _budget_verdict(built, HISTORY_BUDGET_MS),
    )
    request = ModelRequest("Be good.", History().follow(records).messages)
    written = _minimum(repeats, lambda: _cpu_ms(lambda: chat_body("m", request, ServerQuirks(), {})))
    yield ("· encoded as a request", f"{written:.0f} ms", "OpenAI format", "")


def _turn_cpu_ms(calls: int) -> float:
    async def tool(params: object, context: object) -> str:
        return "a line of code\n" * 20

    async def measure() -> float:
        with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
            probe, limits = FakeTool("probe", tool, effects=False), TurnLimits(steps=calls + 10)
            model = InstantModel(calls)
            engine = Engine(
                make_model=lambda name: model, tools=lambda: [probe.spec], system=lambda: "Be good.", limits=limits
            )
            session = await open_test_session(engine, [probe], cast("Workspace", LocalWorkspace(folder)))
            started = time.process_time()
            _, ended = await run_turn(session, "look at all of them")
            spent = (time.process_time() - started) * 1000
            await session.aclose()
        if ended.reason != "done":
            raise SystemExit(f"the turn did not end normally: {ended}")
        return spent

    return asyncio.run(measure())


def _long_records() -> ListRecords:
    return ListRecords(Envelope(seq, 0.0, event) for seq, event in enumerate(_events(), 1))


def _events() -> Iterator[Event]:
    for number in range(MESSAGES // 5):
        yield TurnStarted(f"t{number}", Prompt(f"p{number}", (TextContent("please go on with the work " * 5),)))
        for part in (1, 2):
            call = ToolCall(f"c{number}-{part}", "read", {"path": "src/file.py"}, raw='{"path": "src/file.py"}')
            yield MessageDone(Message(f"m{number}-{part}", (TextContent("I look."), CallPart(call))))
            yield ToolFinished(ToolResult(call.id, "ok", "line of code\n" * 100))


def _cpu_ms(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def _minimum(repeats: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(repeats))


def _budget_verdict(value: float, budget: float) -> str:
    return f"{'within' if value <= budget else '**over**'} {budget:g} ms"
