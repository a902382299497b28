"""Checks of creating, loading, resuming, listing, closing and deleting sessions."""

import os
import tempfile

from ostler.conformance.agent_driver import AgentDriver, text_block
from ostler.conformance.check import Area, CheckFailed, CheckSkipped, require
from ostler.wire.jsonrpc import RpcError

MAX_PAGES = 100
EXIT_TIMEOUT = 5.0
sessions = Area("sessions")


def require_capability(driver: AgentDriver, capability: str) -> None:
    """Raise `CheckSkipped` if the agent does not report the capability."""
    capabilities = driver.agent_info.get("agentCapabilities") or {}
    in_session = capabilities.get("sessionCapabilities") or {}
    value = capabilities.get("loadSession") if capability == "load" else in_session.get(capability)
    if value is None or value is False:
        raise CheckSkipped(f"it does not offer session/{capability}")


async def _session_with_turn(driver: AgentDriver) -> str:
    session = await driver.new_session_id()
    await driver.prompt(session)
    return str(session)


async def _earlier_session(driver: AgentDriver) -> str:
    """Run a session in another process of the agent, as before a restart of the editor, and return its id."""
    other = AgentDriver(driver.target, driver.observations)
    await other.start()
    try:
        await other.initialize()
        session = await _session_with_turn(other)
        await other.exits_within(EXIT_TIMEOUT)
    finally:
        await other.stop()
    return session


@sessions.check("SESS-1", "session/new returns a unique id")
async def _(driver: AgentDriver) -> None:
    first, second = await driver.new_session(), await driver.new_session()
    require(first["sessionId"] != second["sessionId"], "two sessions have the same id")


@sessions.check("SESS-2", "additional directories are accepted")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "additionalDirectories")
    with tempfile.TemporaryDirectory(prefix="ostler-comply-more-") as folder:
        await driver.new_session(additionalDirectories=[os.path.realpath(folder)])


@sessions.check("SESS-3", "session/load sends the history before it answers, also in a new process")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "load")
    session = await _earlier_session(driver)
    await driver.request("session/load", {"sessionId": session, "cwd": driver.target.cwd, "mcpServers": []})
    kinds = driver.update_kinds(session)
    for kind in ("user_message_chunk", "agent_message_chunk"):
        require(kind in kinds, f"no {kind} arrived before the answer")


@sessions.check("SESS-4", "session/resume continues without sending the history")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "resume")
    session = await _earlier_session(driver)
    await driver.request("session/resume", {"sessionId": session, "cwd": driver.target.cwd, "mcpServers": []})
    history = [kind for kind in driver.update_kinds(session) if kind.endswith("message_chunk")]
    require(not history, "it sent the history")
    require(await driver.prompt(session) == "end_turn", "the next turn did not end with end_turn")


@sessions.check("SESS-5", "loading an unknown session is answered with an error")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "load")
    params = {"sessionId": "comply-no-such-session", "cwd": driver.target.cwd, "mcpServers": []}
    await driver.expect_error("session/load", params)


@sessions.check("SESS-6", "session/list includes a session that has a turn")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "list")
    session = await _session_with_turn(driver)
    require(session in await _list_session_ids(driver), "it is not listed")


@sessions.check("SESS-7", "a closed session rejects prompts")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "close")
    session = await driver.new_session_id()
    await driver.request("session/close", {"sessionId": session})
    await driver.expect_error("session/prompt", {"sessionId": session, "prompt": [text_block(driver.target.prompt)]})


@sessions.check("SESS-8", "a deleted session is no longer listed")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "delete")
    session = await _session_with_turn(driver)
    try:
        await driver.request("session/delete", {"sessionId": session})
    except RpcError as error:
        raise CheckFailed(f"it answered {error.code}: {error.details}") from None
    require_capability(driver, "list")
    require(session not in await _list_session_ids(driver), "it is still listed")


async def _list_session_ids(driver: AgentDriver) -> set[str]:
    ids: set[str] = set()
    params = {"cwd": driver.target.cwd}
    for _ in range(MAX_PAGES):
        page = await driver.request("session/list", params)
        ids |= {str(item.get("sessionId")) for item in page.get("sessions", ()) if isinstance(item, dict)}
        if not page.get("nextCursor"):
            break
        params["cursor"] = str(page["nextCursor"])
    return ids
