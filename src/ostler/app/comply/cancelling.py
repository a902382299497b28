"""Checks of cancelling, and of how the agent ends."""

import asyncio
import os
from typing import Any

from ostler.app.comply.bench import Bench, text
from ostler.app.comply.check import NotOffered, Unmet, Writing, demand
from ostler.app.comply.turns import WRITE
from ostler.wire.jsonrpc import CANCELLED, RpcError

LONG = "Count slowly from one to two thousand, one number in each line, and nothing else."
LEAVES = 2.0
AT_ONCE = 0.5
cancelling = Writing("cancelling")
ending = Writing("ending")


async def _begun(bench: Bench) -> tuple[str, "asyncio.Future[str]"]:
    session = str((await bench.new())["sessionId"])
    turn = asyncio.ensure_future(bench.prompt(session, text(LONG)))
    await asyncio.sleep(0)
    return session, turn


async def _speaking(bench: Bench) -> tuple[str, "asyncio.Future[str]"]:
    session, turn = await _begun(bench)
    await bench.until(lambda: turn.done() or any("chunk" in kind for kind in bench.kinds(session)))
    return session, turn


async def _cancelled(bench: Bench, session: str, turn: "asyncio.Future[str]") -> None:
    """One that was over already, or is at once, could not be cancelled any more."""
    before = asyncio.get_running_loop().time()
    bench.peer.notify("session/cancel", {"sessionId": session})
    try:
        reason = await turn
    except RpcError as error:
        raise Unmet(f"it answered with the error {error.code}: {error.message}") from None
    if reason == "end_turn" and asyncio.get_running_loop().time() - before < AT_ONCE:
        raise NotOffered("the turn was over before it could be cancelled")
    demand(reason == "cancelled", f"the stop reason was {reason!r}")


@cancelling.check("CANC-1", "a turn that is cancelled ends with the stop reason cancelled, never with an error")
async def _(bench: Bench) -> None:
    session, turn = await _speaking(bench)
    await _cancelled(bench, session, turn)


@cancelling.check("CANC-2", "so does one that is cancelled right behind its prompt")
async def _(bench: Bench) -> None:
    session, turn = await _begun(bench)
    await _cancelled(bench, session, turn)


@cancelling.check("CANC-3", "after a cancelled turn the session goes on")
async def _(bench: Bench) -> None:
    session, turn = await _speaking(bench)
    await _cancelled(bench, session, turn)
    demand(await bench.prompt(session) == "end_turn", "the next turn did not end well")


@cancelling.check("CANC-4", "cancelling where nothing runs does no harm")
async def _(bench: Bench) -> None:
    session = str((await bench.new())["sessionId"])
    bench.peer.notify("session/cancel", {"sessionId": session})
    bench.peer.notify("session/cancel", {"sessionId": "comply-no-such-session"})
    demand(await bench.prompt(session) == "end_turn", "the next turn did not end well")


@cancelling.check("CANC-5", "cancelling one session leaves the other alone")
async def _(bench: Bench) -> None:
    session, turn = await _speaking(bench)
    other = str((await bench.new())["sessionId"])
    beside = asyncio.ensure_future(bench.prompt(other))
    await _cancelled(bench, session, turn)
    demand(await beside == "end_turn", "the other turn did not end well")


@cancelling.check("CANC-6", "a turn that is cancelled while it asks ends so too, and nothing is done")
async def _(bench: Bench) -> None:
    bench.answers, name = "cancel", "comply-cancelled.txt"
    session = str((await bench.new())["sessionId"])
    bench.asked.clear()
    bench.on_ask = lambda: bench.peer.notify("session/cancel", {"sessionId": session})
    try:
        reason = await bench.prompt(session, text(WRITE.format(name=name)))
    except RpcError as error:
        raise Unmet(f"it answered with the error {error.code}: {error.message}") from None
    finally:
        bench.on_ask = lambda: None
    if not bench.asked:
        raise NotOffered("the model asked for nothing")
    demand(reason == "cancelled", f"the stop reason was {reason!r}")
    demand(not os.path.exists(os.path.join(bench.subject.cwd, name)), "the file is there all the same")


@cancelling.check("CANC-7", "a request that is not wanted any more is answered with a result or -32800", "should")
async def _(bench: Bench) -> None:
    session, number = str((await bench.new())["sessionId"]), "comply-turn"
    await bench.by_hand(number, "session/prompt", {"sessionId": session, "prompt": [text(LONG)]})
    await bench.until(lambda: number in bench.by_id or any("chunk" in kind for kind in bench.kinds(session)))
    bench.peer.notify("$/cancel_request", {"requestId": number})
    demand(await bench.until(lambda: number in bench.by_id), "it did not answer")
    error = bench.by_id[number].get("error") or {}
    demand(error.get("code", CANCELLED) == CANCELLED, f"it answered with the error {error.get('code')}")


@ending.check("END-1", f"it ends within {LEAVES:g} s when its input does", "should")
async def _(bench: Bench) -> None:
    await bench.new()
    demand(await bench.ended(LEAVES), "it, or something it started, still ran")


@ending.check("END-2", "it ends then although a turn runs", "should")
async def _(bench: Bench) -> None:
    await _left(*(await _speaking(bench)), bench)


async def _left(_: str, turn: "asyncio.Future[Any]", bench: Bench) -> None:
    try:
        demand(await bench.ended(LEAVES), "it, or something it started, still ran")
    finally:
        turn.cancel()
        await asyncio.wait({turn})
