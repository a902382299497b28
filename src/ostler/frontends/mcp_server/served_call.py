"""A client's tool call while it runs: its progress, and the questions that it asks the client's user.

In the legacy era the client gets each question as a request. In the modern era the call is answered with the question,
and continues when the client sends the same call again with the reply.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, closing
from typing import Any

from ostler.core.events import Event, MessageDone, PermissionAsked, QuestionAsked, ToolCalled, ToolProgress, TurnEnded
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import EventSubscription, Session
from ostler.core.tools import ToolSpec
from ostler.frontends.mcp_server.client_requests import AskClient, request_approval, request_reply
from ostler.rendering.blocks import render_call
from ostler.rendering.style import Styler
from ostler.text.sanitise import sanitise
from ostler.wire.mcp import ELICIT

ANSWER_SECONDS = 600.0  # for the client's user
PROGRESS_SECONDS = 5.0
MAX_PROGRESS_TEXT = 500

Result = dict[str, Any]
Report = Callable[[int, str], None]
RUN_TOOL = "run"
RUN_SPEC = ToolSpec(
    RUN_TOOL,
    "other",
    "Give a task to Ostler's own agent and return its answer. The answer contains a session id; a later call with this "
    "id continues the conversation.",
    {
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "the task"},
            "session": {"type": "string", "description": "id of an earlier session to continue"},
        },
        "required": ["prompt"],
    },
)

# Opens a new session, or the one with the id; with `True`, the client's user can be asked.
OpenRun = Callable[[str, bool], AbstractAsyncContextManager[Session]]


class ServedCall:
    """One call over all its rounds. `report` sends a progress notification for the current round."""

    def __init__(self, name: str, arguments: Mapping[str, Any], capabilities: Any, ask: AskClient | None) -> None:
        self.name = name
        self.arguments = arguments
        self.capabilities = capabilities
        self.report: Report | None = None
        self._ask = ask or self._ask_in_result
        self._questions: dict[str, tuple[Mapping[str, Any], asyncio.Future[Any]]] = {}
        self._asked = asyncio.Event()
        self._work: asyncio.Task[Result] | None = None
        self._helpers: set[asyncio.Task[None]] = set()
        self._step = 0

    def start(self, work: Awaitable[Result]) -> None:
        self._work = asyncio.ensure_future(work)
        self._run(self._report_regularly())

    def follow(self, session: Session, is_own: Callable[[Event], bool]) -> None:
        """Pass on progress and questions of a session from now on, as far as they belong to this call."""
        subscription = session.subscribe(since=2**62)
        task = self._run(self._follow(session, subscription, is_own))
        task.add_done_callback(lambda _: subscription.close())

    async def next_result(self) -> Result:
        """Return the result of the call, or a request for input. Cancelling this cancels the call."""
        assert self._work is not None
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({self._work, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.aclose()
            raise
        finally:
            asked.cancel()
        if self._work.done():
            self._stop_helpers()
            return self._work.result()
        requests = {key: {"method": ELICIT, "params": params} for key, (params, _) in self._questions.items()}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": secrets.token_urlsafe(16)}

    def take_responses(self, responses: Mapping[str, Any]) -> None:
        """Accept the replies to the questions of the last result; others are ignored."""
        for key in [*self._questions]:
            if isinstance(responses.get(key), dict):
                self._questions.pop(key)[1].set_result(responses[key])
        if not self._questions:
            self._asked.clear()

    async def aclose(self) -> None:
        """Cancel the call and wait for its end."""
        self._stop_helpers()
        if self._work and not self._work.done():
            self._work.cancel()
            await asyncio.wait({self._work})

    # -- questions -----------------------------------------------------------------------------------------------

    async def _ask_in_result(self, params: Mapping[str, Any]) -> Any:
        """Ask with the result of the current round, and wait for the round that has the reply."""
        key = f"question-{secrets.token_hex(4)}"
        reply = asyncio.get_running_loop().create_future()
        self._questions[key] = (params, reply)
        self._asked.set()
        return await reply

    async def _follow(self, session: Session, subscription: EventSubscription, is_own: Callable[[Event], bool]) -> None:
        async for envelope in subscription:
            if is_own(envelope.event):
                self._handle(session, envelope.event)

    def _handle(self, session: Session, event: Event) -> None:
        match event:
            case PermissionAsked():
                self._run(request_approval(session, event, self._ask))
            case QuestionAsked(question):
                self._run(request_reply(session, question, self._ask, self.capabilities))
            case ToolProgress(_, display):
                self._progress(display.summary)
            case ToolCalled(call):
                self._progress(render_call(call, Styler(False)))
            case _:
                pass

    # -- progress ------------------------------------------------------------------------------------------------

    async def _report_regularly(self) -> None:
        """Report every few seconds, so that a client with a time limit keeps waiting."""
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            self._progress("")

    def _progress(self, text: str) -> None:
        self._step += 1
        if self.report:
            self.report(self._step, sanitise(text)[:MAX_PROGRESS_TEXT])

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=f"MCP call {self.name[:40]}")
        self._helpers.add(task)
        task.add_done_callback(self._helpers.discard)
        return task

    def _stop_helpers(self) -> None:
        for task in [*self._helpers]:
            task.cancel()


class SuspendedCalls:
    """Calls that wait for the client's next round, by their request state. Each state is used once and expires."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[ServedCall, asyncio.TimerHandle]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def add(self, state: str, call: ServedCall) -> None:
        call.report = None
        timer = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._expire, state)
        self._calls[state] = (call, timer)

    def take(self, state: Any, name: str, arguments: Mapping[str, Any]) -> ServedCall | None:
        """Return the call that a round continues; None if the state is not known or belongs to another call."""
        call, timer = self._calls.get(state, (None, None)) if isinstance(state, str) else (None, None)
        if call is None or timer is None or (call.name, call.arguments) != (name, arguments):
            return None
        del self._calls[state]
        timer.cancel()
        return call

    def _expire(self, state: str) -> None:
        call, _ = self._calls.pop(state)
        task = asyncio.ensure_future(call.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Cancel all calls."""
        calls, self._calls = self._calls, {}
        for call, timer in calls.values():
            timer.cancel()
            await call.aclose()


async def run_prompt(session: Session, prompt: str, call: ServedCall) -> dict[str, Any]:
    """Run a turn and return the result of the call. Cancelling this cancels the turn."""
    call.follow(session, lambda event: True)
    answers: list[str] = []
    ended = None
    with closing(session.subscribe(since=2**62)) as subscription:
        turn = session.start(Prompt(f"mcp-{secrets.token_hex(4)}", (TextContent(prompt),)))
        try:
            async for envelope in subscription:
                match envelope.event:
                    case MessageDone(message) if message.text.strip():
                        answers.append(message.text)
                    case TurnEnded(turn_id) if turn_id == turn.id:
                        ended = envelope.event
                        break
        finally:
            turn.cancel()
            await turn.wait()
    return _result(session.id, answers[-1] if answers else "", ended)


def _result(session_id: str, answer: str, ended: TurnEnded | None) -> dict[str, Any]:
    is_complete = ended is not None and ended.reason == "done"
    if not is_complete:
        reason = str(ended.fault or ended.reason) if ended else "the session was closed"
        answer = f"{answer}\n\n[not finished: {reason}]".lstrip()
    text = {"type": "text", "text": f"{answer}\n\n[session: {session_id}]"}
    structured = {"answer": answer, "session": session_id}
    return {"content": [text], "structuredContent": structured, "isError": not is_complete}
