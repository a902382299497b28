"""Checks of turns: content types, parallel sessions, tool calls and permission requests."""

import asyncio
import os
from typing import Any

from ostler.conformance.agent_driver import AgentDriver, text_block
from ostler.conformance.check import Area, CheckFailed, CheckSkipped, require, skip_unless
from ostler.wire.jsonrpc import RpcError

STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
FINAL_STATUSES = ("completed", "failed")
LATE_UPDATE_SECONDS = 0.3
WRITE_PROMPT = "Write the word hello into the file {name} in this folder. Use your tools, and ask nothing back."
PNG_DATA = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV_DATA = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
turns = Area("turns")
tools = Area("tools")


async def _check_accepted(driver: AgentDriver, *blocks: dict[str, Any]) -> None:
    reason = await driver.prompt(await driver.new_session_id(), text_block(driver.target.prompt), *blocks)
    require(reason in STOP_REASONS, f"the stop reason {reason!r} is not in the protocol")


def _require_prompt_capability(driver: AgentDriver, capability: str) -> None:
    capabilities = driver.agent_info.get("agentCapabilities") or {}
    skip_unless((capabilities.get("promptCapabilities") or {}).get(capability), f"it does not offer {capability}")


@turns.check("TURN-1", "a prompt is answered with text, then with a stop reason")
async def _(driver: AgentDriver) -> None:
    session = await driver.new_session_id()
    reason = await driver.prompt(session)
    require(reason in STOP_REASONS, f"the stop reason {reason!r} is not in the protocol")
    require("agent_message_chunk" in driver.update_kinds(session), "no agent_message_chunk arrived before the answer")


@turns.check("TURN-2", "no update of the turn arrives after its answer", "should")
async def _(driver: AgentDriver) -> None:
    session = await driver.new_session_id()
    await driver.prompt(session)
    before = len(driver.updates)
    await asyncio.sleep(LATE_UPDATE_SECONDS)
    late = [u["sessionUpdate"] for s, u in driver.updates[before:] if s == session and "chunk" in u["sessionUpdate"]]
    require(not late, f"{', '.join(late)} arrived late")


@turns.check("TURN-3", "a session accepts a second turn")
async def _(driver: AgentDriver) -> None:
    session = await driver.new_session_id()
    await driver.prompt(session)
    before = len(driver.update_kinds(session))
    await driver.prompt(session)
    require("agent_message_chunk" in driver.update_kinds(session)[before:], "the second turn has no text")


@turns.check("TURN-4", "a resource_link is accepted")
async def _(driver: AgentDriver) -> None:
    uri = f"file://{os.path.join(driver.target.cwd, 'comply-link.txt')}"
    await _check_accepted(driver, {"type": "resource_link", "uri": uri, "name": "comply-link.txt"})


@turns.check("TURN-5", "an image is accepted if the agent offers it")
async def _(driver: AgentDriver) -> None:
    _require_prompt_capability(driver, "image")
    await _check_accepted(driver, {"type": "image", "mimeType": "image/png", "data": PNG_DATA})


@turns.check("TURN-6", "a resource is accepted if the agent offers it")
async def _(driver: AgentDriver) -> None:
    _require_prompt_capability(driver, "embeddedContext")
    await _check_accepted(driver, {"type": "resource", "resource": {"uri": "file:///comply.txt", "text": "hello"}})


@turns.check("TURN-7", "audio is accepted if the agent offers it")
async def _(driver: AgentDriver) -> None:
    _require_prompt_capability(driver, "audio")
    await _check_accepted(driver, {"type": "audio", "mimeType": "audio/wav", "data": WAV_DATA})


@turns.check("TURN-8", "two sessions can run turns in parallel")
async def _(driver: AgentDriver) -> None:
    first, second = await driver.new_session_id(), await driver.new_session_id()
    await asyncio.gather(driver.prompt(first), driver.prompt(second))
    for session in (first, second):
        require("agent_message_chunk" in driver.update_kinds(session), "one of them has no text")


@turns.check("TURN-9", "no update names a session that was not opened")
async def _(driver: AgentDriver) -> None:
    """Sessions of earlier checks may still send updates."""
    await driver.prompt(await driver.new_session_id())
    unknown = {session_id for session_id, _ in driver.updates} - driver.session_ids
    require(not unknown, f"there were updates of {', '.join(sorted(unknown))}")


@tools.check("TOOL-1", "a rejected tool call is not carried out")
async def _(driver: AgentDriver) -> None:
    file = await _prompt_to_write(driver, "comply-refused.txt", "reject")
    skip_unless(driver.permission_requests, "the model made no permission request")
    require(not os.path.exists(file), "the file was written anyway")


@tools.check("TOOL-2", "a permission request names its session and call, and can be rejected")
async def _(driver: AgentDriver) -> None:
    skip_unless(driver.permission_requests, "the model made no permission request")
    for request in driver.permission_requests:
        kinds = [option.get("kind") for option in request.get("options", ()) if isinstance(option, dict)]
        require(any(str(kind).startswith("reject") for kind in kinds), f"there were only {kinds}")
        require(any(str(kind).startswith("allow") for kind in kinds), f"there were only {kinds}")


@tools.check("TOOL-3", "an allowed tool call is carried out")
async def _(driver: AgentDriver) -> None:
    driver.updates.clear()
    file = await _prompt_to_write(driver, "comply-allowed.txt", "allow")
    calls = _call_statuses(driver)
    skip_unless(calls, "the model called no tool")
    if "completed" not in calls.values():
        raise CheckSkipped("the model's calls all failed")
    require(os.path.exists(file), "the file was not written")


@tools.check("TOOL-4", "every tool call ends before its turn ends")
async def _(driver: AgentDriver) -> None:
    calls = _call_statuses(driver)
    skip_unless(calls, "the model called no tool")
    unfinished = [name for name, status in calls.items() if status not in FINAL_STATUSES]
    require(
        not unfinished,
        f"{', '.join(unfinished)} stayed {', '.join(str(calls[name]) for name in unfinished)}",
    )


@tools.check("TOOL-5", "locations and changed files are absolute paths")
async def _(driver: AgentDriver) -> None:
    paths = [
        str(item.get("path"))
        for _, update in driver.updates
        for item in (*(update.get("locations") or ()), *_diffs(update))
        if isinstance(item, dict)
    ]
    skip_unless(paths, "no tool call has a location")
    relative = sorted({path for path in paths if not os.path.isabs(path)})
    require(not relative, f"{', '.join(relative)}")


async def _prompt_to_write(driver: AgentDriver, name: str, answer: Any) -> str:
    driver.permission_answer = answer
    file = os.path.join(driver.target.cwd, name)
    try:
        await driver.prompt(await driver.new_session_id(), text_block(WRITE_PROMPT.format(name=name)))
    except RpcError as error:
        raise CheckFailed(f"the turn failed: {error.details}") from None
    return file


def _call_statuses(driver: AgentDriver) -> dict[str, Any]:
    calls: dict[str, Any] = {}
    for _, update in driver.updates:
        if update.get("sessionUpdate") in ("tool_call", "tool_call_update"):
            name = str(update.get("toolCallId"))
            calls[name] = update.get("status") or calls.get(name, "pending")
    return calls


def _diffs(update: dict[str, Any]) -> list[Any]:
    content = update.get("content")
    return [item for item in content if item.get("type") == "diff"] if isinstance(content, list) else []
