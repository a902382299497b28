"""Checks of cancellation and process exit."""

import asyncio
import os
from typing import Any

from ostler.conformance.agent_driver import AgentDriver, text_block
from ostler.conformance.check import AreaBuilder, CheckFailed, CheckSkipped, require
from ostler.conformance.turns import WRITE_PROMPT
from ostler.wire.jsonrpc import CANCELLED, RpcError

LONG_PROMPT = "Count slowly from one to two thousand, one number in each line, and nothing else."
EXIT_TIMEOUT = 2.0
IMMEDIATE_SECONDS = 0.5
cancellation = AreaBuilder("cancelling")
process_exit = AreaBuilder("ending")


async def _start_turn(driver: AgentDriver) -> tuple[str, "asyncio.Future[str]"]:
    session = str((await driver.new_session())["sessionId"])
    turn = asyncio.ensure_future(driver.prompt(session, text_block(LONG_PROMPT)))
    await asyncio.sleep(0)
    return session, turn


async def _start_streaming_turn(driver: AgentDriver) -> tuple[str, "asyncio.Future[str]"]:
    session, turn = await _start_turn(driver)
    await driver.wait_until(lambda: turn.done() or any("chunk" in kind for kind in driver.update_kinds(session)))
    return session, turn


async def _cancel_turn(driver: AgentDriver, session: str, turn: "asyncio.Future[str]") -> None:
    """Cancel a turn and check its stop reason; skip if the turn was already over."""
    start = asyncio.get_running_loop().time()
    driver.peer.notify("session/cancel", {"sessionId": session})
    try:
        reason = await turn
    except RpcError as error:
        raise CheckFailed(f"it answered with the error {error.code}: {error.message}") from None
    if reason == "end_turn" and asyncio.get_running_loop().time() - start < IMMEDIATE_SECONDS:
        raise CheckSkipped("the turn was over before it could be cancelled")
    require(reason == "cancelled", f"the stop reason was {reason!r}")


@cancellation.check("CANC-1", "a cancelled turn ends with the stop reason cancelled, not with an error")
async def _(driver: AgentDriver) -> None:
    session, turn = await _start_streaming_turn(driver)
    await _cancel_turn(driver, session, turn)


@cancellation.check("CANC-2", "a turn cancelled right after its prompt ends with the stop reason cancelled")
async def _(driver: AgentDriver) -> None:
    session, turn = await _start_turn(driver)
    await _cancel_turn(driver, session, turn)


@cancellation.check("CANC-3", "a session can be used after a cancelled turn")
async def _(driver: AgentDriver) -> None:
    session, turn = await _start_streaming_turn(driver)
    await _cancel_turn(driver, session, turn)
    require(await driver.prompt(session) == "end_turn", "the next turn did not end with end_turn")


@cancellation.check("CANC-4", "cancelling without a running turn has no effect")
async def _(driver: AgentDriver) -> None:
    session = str((await driver.new_session())["sessionId"])
    driver.peer.notify("session/cancel", {"sessionId": session})
    driver.peer.notify("session/cancel", {"sessionId": "comply-no-such-session"})
    require(await driver.prompt(session) == "end_turn", "the next turn did not end with end_turn")


@cancellation.check("CANC-5", "cancelling one session does not affect another")
async def _(driver: AgentDriver) -> None:
    session, turn = await _start_streaming_turn(driver)
    other = str((await driver.new_session())["sessionId"])
    other_turn = asyncio.ensure_future(driver.prompt(other))
    await _cancel_turn(driver, session, turn)
    require(await other_turn == "end_turn", "the other turn did not end with end_turn")


@cancellation.check("CANC-6", "a turn cancelled during a permission request ends as cancelled and changes nothing")
async def _(driver: AgentDriver) -> None:
    driver.permission_answer, name = "cancel", "comply-cancelled.txt"
    session = str((await driver.new_session())["sessionId"])
    driver.permission_requests.clear()
    driver.on_permission_request = lambda: driver.peer.notify("session/cancel", {"sessionId": session})
    try:
        reason = await driver.prompt(session, text_block(WRITE_PROMPT.format(name=name)))
    except RpcError as error:
        raise CheckFailed(f"it answered with the error {error.code}: {error.message}") from None
    finally:
        driver.on_permission_request = lambda: None
    if not driver.permission_requests:
        raise CheckSkipped("the model made no permission request")
    require(reason == "cancelled", f"the stop reason was {reason!r}")
    require(not os.path.exists(os.path.join(driver.target.cwd, name)), "the file was written anyway")


@cancellation.check("CANC-7", "a cancelled request is answered with a result or error -32800", "should")
async def _(driver: AgentDriver) -> None:
    session, request_id = str((await driver.new_session())["sessionId"]), "comply-turn"
    await driver.send_in_chunks(
        request_id, "session/prompt", {"sessionId": session, "prompt": [text_block(LONG_PROMPT)]}
    )
    await driver.wait_until(
        lambda: request_id in driver.responses or any("chunk" in kind for kind in driver.update_kinds(session))
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
    await _check_exit(*(await _start_streaming_turn(driver)), driver)


async def _check_exit(_: str, turn: "asyncio.Future[Any]", driver: AgentDriver) -> None:
    try:
        require(await driver.exits_within(EXIT_TIMEOUT), "the agent or a process it started is still running")
    finally:
        turn.cancel()
        await asyncio.wait({turn})
