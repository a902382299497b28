"""Checks of cancellation and process exit."""

import asyncio
import contextlib
import os
from typing import Any

from ostler.conformance.agent_driver import AgentDriver, text_block
from ostler.conformance.check import Area, CheckFailed, CheckSkipped, require, skip_unless
from ostler.conformance.turns import WRITE_PROMPT
from ostler.wire.jsonrpc import CANCELLED, RpcError

LONG_PROMPT = "Count slowly from one to two thousand, one number in each line, and nothing else."
EXIT_TIMEOUT = 2.0
MAX_WORK_SECONDS = 2.0
SETTLE_SECONDS = 0.02  # in which a very short turn ends by itself
WORK_KINDS = ("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan")
cancellation = Area("cancelling")
process_exit = Area("ending")


def _work_seconds(driver: AgentDriver) -> float:
    """Return the time after which an agent that sends nothing is assumed to work."""
    return min(MAX_WORK_SECONDS, driver.target.timeout / 10)


class _LongTurn:
    """A turn with a prompt that takes a model long to answer."""

    def __init__(self, driver: AgentDriver, session: str) -> None:
        self.session = session
        self._driver = driver
        self._first_update = len(driver.updates)
        self._requests = len(driver.permission_requests)
        self._start = asyncio.get_running_loop().time()
        self.answer = asyncio.ensure_future(driver.prompt(session, text_block(LONG_PROMPT)))
        self.answer.add_done_callback(lambda _: driver.wake())

    @property
    def seconds(self) -> float:
        return asyncio.get_running_loop().time() - self._start

    @property
    def text_length(self) -> int:
        """The number of characters that the agent has sent in this turn."""
        contents = (update.get("content") for update in self._updates("agent_message_chunk"))
        return sum(len(str(content.get("text", ""))) for content in contents if isinstance(content, dict))

    def has_begun(self) -> bool:
        """Return whether the turn has ended or shows a sign of work; agents that do not stream may show none."""
        requested = len(self._driver.permission_requests) > self._requests
        return self.answer.done() or requested or bool(self._updates(*WORK_KINDS))

    async def wait_for_work(self) -> None:
        await self._driver.wait_until(self.has_begun, _work_seconds(self._driver))
        await asyncio.wait({self.answer}, timeout=SETTLE_SECONDS)

    async def cancel(self) -> str:
        """Cancel the turn and return its stop reason. Raises `CheckSkipped` if it was over before."""
        if self.answer.done():
            await self.answer
            raise CheckSkipped("the turn was over before it could be cancelled")
        self._driver.peer.notify("session/cancel", {"sessionId": self.session})
        return await self.answer

    async def stop(self) -> None:
        """Cancel the turn and wait for its end, of any kind. Raises `CheckSkipped` if it does not end."""
        try:
            await self.cancel()
        except RpcError:
            return
        except CheckFailed as failure:
            raise CheckSkipped(f"the turn could not be cancelled: {failure}") from None

    def _updates(self, *kinds: str) -> list[dict[str, Any]]:
        received = self._driver.updates[self._first_update :]
        return [u for session, u in received if session == self.session and u.get("sessionUpdate") in kinds]


async def _start_turn(driver: AgentDriver) -> _LongTurn:
    turn = _LongTurn(driver, await driver.new_session_id())
    await asyncio.sleep(0)
    return turn


async def _start_working_turn(driver: AgentDriver) -> _LongTurn:
    turn = await _start_turn(driver)
    await turn.wait_for_work()
    return turn


async def _check_cancelled(driver: AgentDriver, turn: _LongTurn) -> None:
    """Cancel a turn and check its stop reason; skip if it was over before the agent could read the cancellation."""
    try:
        reason = await turn.cancel()
    except RpcError as error:
        raise CheckFailed(f"it answered with the error {error.code}: {error.message}") from None
    if reason == "end_turn" and await _ends_by_itself(driver, turn):
        raise CheckSkipped("the turn was over before it could be cancelled")
    require(reason == "cancelled", f"the stop reason was {reason!r}")


async def _ends_by_itself(driver: AgentDriver, cancelled: _LongTurn) -> bool:
    """Return whether the same turn, without a cancellation, ends as early as the cancelled one did."""
    max_length, max_seconds = 2 * cancelled.text_length + 20, 2 * cancelled.seconds + _work_seconds(driver)
    turn = await _start_turn(driver)
    await driver.wait_until(lambda: turn.answer.done() or turn.text_length > max_length, max_seconds)
    if turn.text_length <= max_length and turn.answer.done():
        await turn.answer
        return True
    with contextlib.suppress(CheckSkipped):
        await turn.stop()
    return False


@cancellation.check("CANC-1", "a cancelled turn ends with the stop reason cancelled, not with an error")
async def _(driver: AgentDriver) -> None:
    await _check_cancelled(driver, await _start_working_turn(driver))


@cancellation.check("CANC-2", "a turn cancelled right after its prompt ends with the stop reason cancelled")
async def _(driver: AgentDriver) -> None:
    await _check_cancelled(driver, await _start_turn(driver))


@cancellation.check("CANC-3", "a session can be used after a cancelled turn")
async def _(driver: AgentDriver) -> None:
    turn = await _start_working_turn(driver)
    await turn.stop()
    require(await driver.prompt(turn.session) == "end_turn", "the next turn did not end with end_turn")


@cancellation.check("CANC-4", "cancelling without a running turn has no effect")
async def _(driver: AgentDriver) -> None:
    session = await driver.new_session_id()
    driver.peer.notify("session/cancel", {"sessionId": session})
    driver.peer.notify("session/cancel", {"sessionId": "comply-no-such-session"})
    require(await driver.prompt(session) == "end_turn", "the next turn did not end with end_turn")


@cancellation.check("CANC-5", "cancelling one session does not affect another")
async def _(driver: AgentDriver) -> None:
    turn = await _start_working_turn(driver)
    other = await driver.new_session_id()
    other_turn = asyncio.ensure_future(driver.prompt(other))
    try:
        await turn.stop()
        require(await other_turn == "end_turn", "the other turn did not end with end_turn")
    finally:
        other_turn.cancel()
        await asyncio.wait({other_turn})


@cancellation.check("CANC-6", "a turn cancelled during a permission request ends as cancelled and changes nothing")
async def _(driver: AgentDriver) -> None:
    driver.permission_answer, name = "cancel", "comply-cancelled.txt"
    session = await driver.new_session_id()
    driver.permission_requests.clear()
    driver.on_permission_request = lambda: driver.peer.notify("session/cancel", {"sessionId": session})
    try:
        reason = await driver.prompt(session, text_block(WRITE_PROMPT.format(name=name)))
    except RpcError as error:
        raise CheckFailed(f"it answered with the error {error.code}: {error.message}") from None
    finally:
        driver.on_permission_request = lambda: None
    skip_unless(driver.permission_requests, "the model made no permission request")
    require(reason == "cancelled", f"the stop reason was {reason!r}")
    require(not os.path.exists(os.path.join(driver.target.cwd, name)), "the file was written anyway")


@cancellation.check("CANC-7", "a cancelled request is answered with a result or error -32800", "should")
async def _(driver: AgentDriver) -> None:
    session, request_id = await driver.new_session_id(), "comply-turn"
    await driver.send_in_chunks(
        request_id, "session/prompt", {"sessionId": session, "prompt": [text_block(LONG_PROMPT)]}
    )
    await driver.wait_until(
        lambda: request_id in driver.responses or any(kind in WORK_KINDS for kind in driver.update_kinds(session)),
        _work_seconds(driver),
    )
    driver.peer.notify("$/cancel_request", {"requestId": request_id})
    require(await driver.wait_until(lambda: request_id in driver.responses), "it did not answer")
    error = driver.responses[request_id].get("error") or {}
    require(error.get("code", CANCELLED) == CANCELLED, f"it answered with the error {error.get('code')}")


@process_exit.check("END-1", f"the agent exits within {EXIT_TIMEOUT:g} s after its input is closed", "should")
async def _(driver: AgentDriver) -> None:
    await driver.new_session()
    require(await driver.exits_within(EXIT_TIMEOUT), "the agent or a process it started is still running")


@process_exit.check("END-2", "it also exits if a turn is running", "should")
async def _(driver: AgentDriver) -> None:
    turn = await _start_working_turn(driver)
    try:
        require(await driver.exits_within(EXIT_TIMEOUT), "the agent or a process it started is still running")
    finally:
        turn.answer.cancel()
        await asyncio.wait({turn.answer})
