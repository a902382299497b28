"""Checks of sessions: new, loaded, resumed, listed, closed, deleted."""

import os

from ostler.app.conformance.agent_driver import AgentDriver, text_block
from ostler.app.conformance.check import AreaBuilder, CheckFailed, CheckSkipped, require
from ostler.wire.jsonrpc import RpcError

MAX_PAGES = 100
EXIT_TIMEOUT = 5.0
sessions = AreaBuilder("sessions")


def require_capability(driver: AgentDriver, capability: str) -> None:
    """Only what the agent says it can do is asked of it."""
    can = driver.agent_info.get("agentCapabilities") or {}
    found = can.get("loadSession") if capability == "load" else (can.get("sessionCapabilities") or {}).get(capability)
    if found is None or found is False:
        raise CheckSkipped(f"it does not offer session/{capability}")


async def _session_with_turn(driver: AgentDriver) -> str:
    session = (await driver.new_session())["sessionId"]
    await driver.prompt(session)
    return str(session)


async def _earlier_session(driver: AgentDriver) -> str:
    """A session of another process of the same agent that is over, as after a restart of the editor."""
    other = AgentDriver(driver.target, driver.observations)
    await other.start()
    try:
        await other.initialize()
        session = await _session_with_turn(other)
        await other.exits_within(EXIT_TIMEOUT)
    finally:
        await other.stop()
    return session


@sessions.check("SESS-1", "session/new gives an id, and each session its own")
async def _(driver: AgentDriver) -> None:
    first, second = await driver.new_session(), await driver.new_session()
    require(first["sessionId"] != second["sessionId"], "two sessions have one id")


@sessions.check("SESS-2", "additional directories are taken")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "additionalDirectories")
    await driver.new_session(additionalDirectories=[os.path.dirname(driver.target.cwd) or "/"])


@sessions.check("SESS-3", "session/load tells what was said before it answers, in another process too")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "load")
    session = await _earlier_session(driver)
    await driver.request("session/load", {"sessionId": session, "cwd": driver.target.cwd, "mcpServers": []})
    kinds = driver.update_kinds(session)
    for kind in ("user_message_chunk", "agent_message_chunk"):
        require(kind in kinds, f"no {kind} came before the answer")


@sessions.check("SESS-4", "session/resume goes on without telling what was said")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "resume")
    session = await _earlier_session(driver)
    await driver.request("session/resume", {"sessionId": session, "cwd": driver.target.cwd, "mcpServers": []})
    told = [kind for kind in driver.update_kinds(session) if kind.endswith("message_chunk")]
    require(not told, "it told the history")
    require(await driver.prompt(session) == "end_turn", "a turn in it did not end well")


@sessions.check("SESS-5", "a session that is not there can be neither loaded nor resumed")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "load")
    place = {"sessionId": "comply-no-such-session", "cwd": driver.target.cwd, "mcpServers": []}
    await driver.expect_error("session/load", place)


@sessions.check("SESS-6", "session/list has a session with a turn in it")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "list")
    session = await _session_with_turn(driver)
    require(session in await _list_session_ids(driver), "it is not listed")


@sessions.check("SESS-7", "a closed session takes no prompts")
async def _(driver: AgentDriver) -> None:
    require_capability(driver, "close")
    session = (await driver.new_session())["sessionId"]
    await driver.request("session/close", {"sessionId": session})
    await driver.expect_error("session/prompt", {"sessionId": session, "prompt": [text_block(driver.target.prompt)]})


@sessions.check("SESS-8", "a deleted session is not listed any more")
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
    found: set[str] = set()
    params = {"cwd": driver.target.cwd}
    for _ in range(MAX_PAGES):
        page = await driver.request("session/list", params)
        found |= {str(one.get("sessionId")) for one in page.get("sessions", ()) if isinstance(one, dict)}
        if not page.get("nextCursor"):
            break
        params["cursor"] = str(page["nextCursor"])
    return found
