"""Checks of what can be chosen in a session: modes, options, commands."""

from typing import Any

from ostler.app.conformance.agent_driver import AgentDriver
from ostler.app.conformance.check import AreaBuilder, CheckSkipped, require

UPDATE_TIMEOUT = 2.0
session_options = AreaBuilder("choosing")


@session_options.check("MODE-1", "the mode that is on is one of those on offer, and each of them can be set")
async def _(driver: AgentDriver) -> None:
    opened = await driver.new_session()
    modes = opened.get("modes") or {}
    names = [mode.get("id") for mode in modes.get("availableModes") or ()]
    if not names:
        raise CheckSkipped("it has no modes")
    require(modes.get("currentModeId") in names, f"{modes.get('currentModeId')!r} is none of {names}")
    for name in [*names, modes["currentModeId"]]:
        await driver.request("session/set_mode", {"sessionId": opened["sessionId"], "modeId": name})


@session_options.check("MODE-2", "a mode that is not on offer is refused", "should")
async def _(driver: AgentDriver) -> None:
    opened = await driver.new_session()
    if not opened.get("modes"):
        raise CheckSkipped("it has no modes")
    await driver.expect_error("session/set_mode", {"sessionId": opened["sessionId"], "modeId": "comply-no-such-mode"})


@session_options.check("OPT-1", "every option has a value that is on offer")
async def _(driver: AgentDriver) -> None:
    for option in _require_options(await driver.new_session()):
        values, now = _values(option), option.get("currentValue")
        require(now in values, f"{option.get('id')} is {now!r}, which is none of {values}")


@session_options.check("OPT-2", "an option can be set, and the answer has them all as they are then")
async def _(driver: AgentDriver) -> None:
    opened = await driver.new_session()
    for option in _require_options(opened):
        others = [value for value in _values(option) if value != option.get("currentValue")]
        if not others or option.get("type") == "boolean":
            continue
        params = {"sessionId": opened["sessionId"], "configId": option["id"], "value": others[0]}
        answer = await driver.request("session/set_config_option", params)
        now = {one.get("id"): one.get("currentValue") for one in answer.get("configOptions") or ()}
        require(now.get(option["id"]) == others[0], f"{option['id']} is {now.get(option['id'])!r}, not {others[0]!r}")


@session_options.check("OPT-3", "an option or a value that is not on offer is refused", "should")
async def _(driver: AgentDriver) -> None:
    opened = await driver.new_session()
    (first, *_) = _require_options(opened)
    session = opened["sessionId"]
    for name, value in (("comply-no-such-option", "x"), (first["id"], "comply-no-such-value")):
        await driver.expect_error("session/set_config_option", {"sessionId": session, "configId": name, "value": value})


@session_options.check("COMM-1", "commands are told after the answer that names the session, by names without a slash")
async def _(driver: AgentDriver) -> None:
    session = (await driver.new_session())["sessionId"]
    await driver.wait_until(lambda: "available_commands_update" in driver.update_kinds(session), UPDATE_TIMEOUT)
    told = [u for s, u in driver.updates if s == session and u.get("sessionUpdate") == "available_commands_update"]
    if not told:
        raise CheckSkipped("it has no commands")
    slashes = [c["name"] for c in told[-1].get("availableCommands", ()) if str(c.get("name")).startswith("/")]
    require(not slashes, f"{', '.join(slashes)}")


def _require_options(session: dict[str, Any]) -> list[dict[str, Any]]:
    options = session.get("configOptions") or []
    if not options:
        raise CheckSkipped("it has no options")
    return [*options]


def _values(option: dict[str, Any]) -> list[Any]:
    if option.get("type") == "boolean":
        return [True, False]
    listed = option.get("options") or []
    inside = [choice for group in listed for choice in group.get("options") or ()]
    return [choice["value"] for choice in (*listed, *inside) if "value" in choice]
