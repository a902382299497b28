"""Checks of what can be chosen in a session: modes, options, commands."""

from typing import Any

from ostler.app.comply.bench import Bench
from ostler.app.comply.check import NotOffered, Writing, demand

SOON = 2.0
choosing = Writing("choosing")


@choosing.check("MODE-1", "the mode that is on is one of those on offer, and each of them can be set")
async def _(bench: Bench) -> None:
    opened = await bench.new()
    modes = opened.get("modes") or {}
    names = [mode.get("id") for mode in modes.get("availableModes") or ()]
    if not names:
        raise NotOffered("it has no modes")
    demand(modes.get("currentModeId") in names, f"{modes.get('currentModeId')!r} is none of {names}")
    for name in [*names, modes["currentModeId"]]:
        await bench.request("session/set_mode", {"sessionId": opened["sessionId"], "modeId": name})


@choosing.check("MODE-2", "a mode that is not on offer is refused", "should")
async def _(bench: Bench) -> None:
    opened = await bench.new()
    if not opened.get("modes"):
        raise NotOffered("it has no modes")
    await bench.refusal("session/set_mode", {"sessionId": opened["sessionId"], "modeId": "comply-no-such-mode"})


@choosing.check("OPT-1", "every option has a value that is on offer")
async def _(bench: Bench) -> None:
    for option in _options(await bench.new()):
        values, now = _values(option), option.get("currentValue")
        demand(now in values, f"{option.get('id')} is {now!r}, which is none of {values}")


@choosing.check("OPT-2", "an option can be set, and the answer has them all as they are then")
async def _(bench: Bench) -> None:
    opened = await bench.new()
    for option in _options(opened):
        others = [value for value in _values(option) if value != option.get("currentValue")]
        if not others or option.get("type") == "boolean":
            continue
        params = {"sessionId": opened["sessionId"], "configId": option["id"], "value": others[0]}
        answer = await bench.request("session/set_config_option", params)
        now = {one.get("id"): one.get("currentValue") for one in answer.get("configOptions") or ()}
        demand(now.get(option["id"]) == others[0], f"{option['id']} is {now.get(option['id'])!r}, not {others[0]!r}")


@choosing.check("OPT-3", "an option or a value that is not on offer is refused", "should")
async def _(bench: Bench) -> None:
    opened = await bench.new()
    (first, *_) = _options(opened)
    session = opened["sessionId"]
    for name, value in (("comply-no-such-option", "x"), (first["id"], "comply-no-such-value")):
        await bench.refusal("session/set_config_option", {"sessionId": session, "configId": name, "value": value})


@choosing.check("COMM-1", "commands are told after the answer that names the session, by names without a slash")
async def _(bench: Bench) -> None:
    session = (await bench.new())["sessionId"]
    await bench.until(lambda: "available_commands_update" in bench.kinds(session), SOON)
    told = [u for s, u in bench.updates if s == session and u.get("sessionUpdate") == "available_commands_update"]
    if not told:
        raise NotOffered("it has no commands")
    slashes = [c["name"] for c in told[-1].get("availableCommands", ()) if str(c.get("name")).startswith("/")]
    demand(not slashes, f"{', '.join(slashes)}")


def _options(opened: dict[str, Any]) -> list[dict[str, Any]]:
    options = opened.get("configOptions") or []
    if not options:
        raise NotOffered("it has no options")
    return [*options]


def _values(option: dict[str, Any]) -> list[Any]:
    if option.get("type") == "boolean":
        return [True, False]
    listed = option.get("options") or []
    inside = [choice for group in listed for choice in group.get("options") or ()]
    return [choice["value"] for choice in (*listed, *inside) if "value" in choice]
