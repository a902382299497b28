"""The tool `run`: gives a task to Ostler's agent and returns its answer."""

import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from typing import Any

from ostler.core.events import MessageDone, TurnEnded
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Session
from ostler.core.tools import ToolSpec
from ostler.frontends.mcp_server.served_call import ServedCall

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
