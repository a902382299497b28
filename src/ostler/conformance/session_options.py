"""Checks of modes, config options and slash commands."""

from typing import Any

from ostler.conformance.agent_driver import AgentDriver
from ostler.conformance.check import Area, require, skip_unless

UPDATE_TIMEOUT = 2.0
session_options = Area("choosing")


@session_options.check("MODE-1", "the current mode is one of the available modes, and each of them can be set")
async def _(driver: AgentDriver) -> None:
    opened = await driver.new_session()
    modes = opened.get("modes") or {}
    names = [mode.get("id") for mode in modes.get("availableModes") or ()]
    skip_unless(names, "it has no modes")
    require(modes.get("currentModeId") in names, f"{modes.get('currentModeId')!r} is not in {names}")
    for name in [*names, modes["currentModeId"]]:
        await driver.request("session/set_mode", {"sessionId": opened["sessionId"], "modeId": name})


@session_options.check("MODE-2", "an unknown mode is rejected", "should")
async def _(driver: AgentDriver) -> None:
    opened = await driver.new_session()
    skip_unless(opened.get("modes"), "it has no modes")
    await driver.expect_error("session/set_mode", {"sessionId": opened["sessionId"], "modeId": "comply-no-such-mode"})


@session_options.check("OPT-1", "the current value of every option is one of its values")
async def _(driver: AgentDriver) -> None:
    for option in _require_options(await driver.new_session()):
        values, current = _values(option), option.get("currentValue")
        require(current in values, f"{option.get('id')} is {current!r}, which is not in {values}")


@session_options.check("OPT-2", "an option can be set, and the answer has the new values of all options")
async def _(driver: AgentDriver) -> None:
    opened = await driver.new_session()
    for option in _require_options(opened):
        others = [value for value in _values(option) if value != option.get("currentValue")]
        if not others or option.get("type") == "boolean":
            continue
        params = {"sessionId": opened["sessionId"], "configId": option["id"], "value": others[0]}
        answer = await driver.request("session/set_config_option", params)
        values = {item.get("id"): item.get("currentValue") for item in answer.get("configOptions") or ()}
        current = values.get(option["id"])
        require(current == others[0], f"{option['id']} is {current!r}, not {others[0]!r}")


@session_options.check("OPT-3", "an unknown option or value is rejected", "should")
async def _(driver: AgentDriver) -> None:
    opened = await driver.new_session()
    (first, *_) = _require_options(opened)
    session = opened["sessionId"]
    for name, value in (("comply-no-such-option", "x"), (first["id"], "comply-no-such-value")):
        await driver.expect_error("session/set_config_option", {"sessionId": session, "configId": name, "value": value})


@session_options.check("COMM-1", "commands are sent after the answer to session/new, with names without a slash")
async def _(driver: AgentDriver) -> None:
    session = await driver.new_session_id()
    await driver.wait_until(lambda: "available_commands_update" in driver.update_kinds(session), UPDATE_TIMEOUT)
    updates = [u for s, u in driver.updates if s == session and u.get("sessionUpdate") == "available_commands_update"]
    skip_unless(updates, "it has no commands")
    slashes = [c["name"] for c in updates[-1].get("availableCommands", ()) if str(c.get("name")).startswith("/")]
    require(not slashes, f"{', '.join(slashes)}")


def _require_options(session: dict[str, Any]) -> list[dict[str, Any]]:
    options = session.get("configOptions") or []
    skip_unless(options, "it has no options")
    return [*options]


def _values(option: dict[str, Any]) -> list[Any]:
    if option.get("type") == "boolean":
        return [True, False]
    listed = option.get("options") or []
    inside = [choice for group in listed for choice in group.get("options") or ()]
    return [choice["value"] for choice in (*listed, *inside) if "value" in choice]
