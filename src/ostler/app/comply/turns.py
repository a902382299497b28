"""Checks of turns: words, blocks, sessions side by side, calls and asks."""

import asyncio
import os
from typing import Any

from ostler.app.comply.bench import Bench, text
from ostler.app.comply.check import NotOffered, Unmet, Writing, demand
from ostler.wire.jsonrpc import RpcError

REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
OVER = ("completed", "failed")
LATE = 0.3
WRITE = "Write the word hello into the file {name} in this folder. Use your tools, and ask nothing back."
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
turns = Writing("turns")
tools = Writing("tools")


async def _session(bench: Bench) -> str:
    return str((await bench.new())["sessionId"])


async def _taken(bench: Bench, *blocks: dict[str, Any]) -> None:
    reason = await bench.prompt(await _session(bench), text(bench.subject.prompt), *blocks)
    demand(reason in REASONS, f"the stop reason {reason!r} is none of the protocol's")


def _offers(bench: Bench, what: str) -> None:
    can = bench.told.get("agentCapabilities") or {}
    if not (can.get("promptCapabilities") or {}).get(what):
        raise NotOffered(f"it does not offer {what}")


@turns.check("TURN-1", "a prompt is answered with words, then with a stop reason")
async def _(bench: Bench) -> None:
    session = await _session(bench)
    reason = await bench.prompt(session)
    demand(reason in REASONS, f"the stop reason {reason!r} is none of the protocol's")
    demand("agent_message_chunk" in bench.kinds(session), "no agent_message_chunk came before the answer")


@turns.check("TURN-2", "nothing of the turn comes after its answer", "should")
async def _(bench: Bench) -> None:
    session = await _session(bench)
    await bench.prompt(session)
    before = len(bench.updates)
    await asyncio.sleep(LATE)
    late = [u["sessionUpdate"] for s, u in bench.updates[before:] if s == session and "chunk" in u["sessionUpdate"]]
    demand(not late, f"{', '.join(late)} came late")


@turns.check("TURN-3", "a session goes on with another turn")
async def _(bench: Bench) -> None:
    session = await _session(bench)
    await bench.prompt(session)
    before = len(bench.kinds(session))
    await bench.prompt(session)
    demand("agent_message_chunk" in bench.kinds(session)[before:], "the second turn said nothing")


@turns.check("TURN-4", "a resource_link is taken")
async def _(bench: Bench) -> None:
    uri = f"file://{os.path.join(bench.subject.cwd, 'comply-link.txt')}"
    await _taken(bench, {"type": "resource_link", "uri": uri, "name": "comply-link.txt"})


@turns.check("TURN-5", "an image is taken where it is offered")
async def _(bench: Bench) -> None:
    _offers(bench, "image")
    await _taken(bench, {"type": "image", "mimeType": "image/png", "data": PIXEL})


@turns.check("TURN-6", "a resource is taken where it is offered")
async def _(bench: Bench) -> None:
    _offers(bench, "embeddedContext")
    await _taken(bench, {"type": "resource", "resource": {"uri": "file:///comply.txt", "text": "hello"}})


@turns.check("TURN-7", "audio is taken where it is offered")
async def _(bench: Bench) -> None:
    _offers(bench, "audio")
    await _taken(bench, {"type": "audio", "mimeType": "audio/wav", "data": SILENCE})


@turns.check("TURN-8", "two sessions side by side each have their own turn")
async def _(bench: Bench) -> None:
    first, second = await _session(bench), await _session(bench)
    await asyncio.gather(bench.prompt(first), bench.prompt(second))
    for session in (first, second):
        demand("agent_message_chunk" in bench.kinds(session), "one of them said nothing")


@turns.check("TURN-9", "no update names a session that was not opened")
async def _(bench: Bench) -> None:
    """Those that other checks opened may still be told of."""
    await bench.prompt(await _session(bench))
    strangers = {named for named, _ in bench.updates} - bench.opened
    demand(not strangers, f"there were updates of {', '.join(sorted(strangers))}")


@tools.check("TOOL-1", "what is refused is not done")
async def _(bench: Bench) -> None:
    file = await _asked_to_write(bench, "comply-refused.txt", "reject")
    if not bench.asked:
        raise NotOffered("the model asked for nothing")
    demand(not os.path.exists(file), "the file is there all the same")


@tools.check("TOOL-2", "an ask names its session and its call, and offers a way to refuse")
async def _(bench: Bench) -> None:
    if not bench.asked:
        raise NotOffered("the model asked for nothing")
    for asked in bench.asked:
        kinds = [option.get("kind") for option in asked.get("options", ()) if isinstance(option, dict)]
        demand(any(str(kind).startswith("reject") for kind in kinds), f"there were only {kinds}")
        demand(any(str(kind).startswith("allow") for kind in kinds), f"there were only {kinds}")


@tools.check("TOOL-3", "what is allowed is done")
async def _(bench: Bench) -> None:
    bench.updates.clear()
    file = await _asked_to_write(bench, "comply-allowed.txt", "allow")
    calls = _calls(bench)
    if not calls:
        raise NotOffered("the model called no tool")
    if "completed" not in calls.values():
        raise NotOffered("the model's calls all failed")
    demand(os.path.exists(file), "the file is not there")


@tools.check("TOOL-4", "every call comes to an end before its turn does")
async def _(bench: Bench) -> None:
    calls = _calls(bench)
    if not calls:
        raise NotOffered("the model called no tool")
    left = [name for name, status in calls.items() if status not in OVER]
    demand(not left, f"{', '.join(left)} stayed {', '.join(str(calls[name]) for name in left)}")


@tools.check("TOOL-5", "places and changed files are told by absolute paths")
async def _(bench: Bench) -> None:
    told = [
        str(item.get("path"))
        for _, update in bench.updates
        for item in (*(update.get("locations") or ()), *_diffs(update))
        if isinstance(item, dict)
    ]
    if not told:
        raise NotOffered("no call told a place")
    relative = sorted({path for path in told if not os.path.isabs(path)})
    demand(not relative, f"{', '.join(relative)}")


async def _asked_to_write(bench: Bench, name: str, answer: Any) -> str:
    bench.answers = answer
    file = os.path.join(bench.subject.cwd, name)
    try:
        await bench.prompt(await _session(bench), text(WRITE.format(name=name)))
    except RpcError as error:
        raise Unmet(f"the turn failed: {error.details}") from None
    return file


def _calls(bench: Bench) -> dict[str, Any]:
    calls: dict[str, Any] = {}
    for _, update in bench.updates:
        if update.get("sessionUpdate") in ("tool_call", "tool_call_update"):
            name = str(update.get("toolCallId"))
            calls[name] = update.get("status") or calls.get(name, "pending")
    return calls


def _diffs(update: dict[str, Any]) -> list[Any]:
    content = update.get("content")
    return [item for item in content if item.get("type") == "diff"] if isinstance(content, list) else []
