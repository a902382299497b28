"""Checks of how a conversation begins, of errors, and of lines that are no frames."""

import asyncio

from ostler.app.conformance.agent_driver import AgentDriver, text_block
from ostler.app.conformance.check import AreaBuilder, CheckFailed, require
from ostler.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

RESPONSE_TIMEOUT = 5.0
handshake = AreaBuilder("handshake", initialized=False)
errors = AreaBuilder("errors")
framing = AreaBuilder("framing")


@handshake.check("INIT-1", "initialize is answered with protocol version 1")
async def _(driver: AgentDriver) -> None:
    await driver.initialize()
    version = driver.agent_info.get("protocolVersion")
    require(version == 1, f"it answered version {version!r}")


@handshake.check("INIT-2", "a version that nobody speaks is answered with one it speaks, not with an error")
async def _(driver: AgentDriver) -> None:
    again = AgentDriver(driver.target, driver.observations)
    await again.start()
    try:
        told = await again.request("initialize", {"protocolVersion": 65535, "clientCapabilities": {}})
    except RpcError as error:
        raise CheckFailed(f"it answered with the error {error.code}: {error.message}") from None
    finally:
        await again.stop()
    version = told.get("protocolVersion") if isinstance(told, dict) else None
    require(isinstance(version, int) and version < 65535, f"it answered version {version!r}")


@handshake.check("INIT-3", "capabilities and _meta that it does not know are ignored")
async def _(driver: AgentDriver) -> None:
    again = AgentDriver(driver.target, driver.observations)
    await again.start()
    capabilities = {"fs": {}, "telepathy": {"range": 7}, "_meta": {"moon": "full"}}
    try:
        await again.request(
            "initialize",
            {"protocolVersion": 1, "clientCapabilities": capabilities, "_meta": {"protocolVersion": 9}, "extra": [1]},
        )
    finally:
        await again.stop()


@errors.check("ERR-1", "a method that it does not have is answered with -32601")
async def _(driver: AgentDriver) -> None:
    error = await driver.expect_error("comply/no_such_method", {})
    require(error.code == METHOD_NOT_FOUND, f"it answered {error.code}: {error.message}")


@errors.check("ERR-2", "an extension method that it does not have is answered")
async def _(driver: AgentDriver) -> None:
    try:
        await driver.request("_comply/no_such_extension", {})
    except RpcError as error:
        require(error.code == METHOD_NOT_FOUND, f"it answered {error.code}: {error.message}")


@errors.check("ERR-3", "parameters that are missing are an error")
async def _(driver: AgentDriver) -> None:
    await driver.expect_error("session/new", {})


@errors.check("ERR-4", "wrong parameters are told as -32602", "should")
async def _(driver: AgentDriver) -> None:
    error = await driver.expect_error("session/new", {"cwd": 7, "mcpServers": []})
    require(error.code == INVALID_PARAMS, f"it answered {error.code}: {error.message}")


@errors.check("ERR-5", "a notification that it does not know is ignored")
async def _(driver: AgentDriver) -> None:
    driver.peer.notify("comply/no_such_notification", {"sessionId": "x"})
    driver.peer.notify("_comply/no_such_notification", {})
    await driver.new_session()


@errors.check("ERR-6", "a session that is not there is an error")
async def _(driver: AgentDriver) -> None:
    block = [text_block(driver.target.prompt)]
    await driver.expect_error("session/prompt", {"sessionId": "comply-no-such-session", "prompt": block})


@errors.check("ERR-7", "_meta never takes the place of a parameter")
async def _(driver: AgentDriver) -> None:
    await driver.expect_error("session/new", {"mcpServers": [], "_meta": {"cwd": driver.target.cwd}})


@errors.check("ERR-8", "a relative cwd is refused", "should")
async def _(driver: AgentDriver) -> None:
    await driver.expect_error("session/new", {"cwd": "not/absolute", "mcpServers": []})


async def _check_survives(driver: AgentDriver, junk: bytes) -> None:
    driver.sent_junk = True
    driver.send_raw(junk)
    try:
        await driver.expect_error("comply/still_there", {})
    except CheckFailed as unmet:
        raise CheckFailed(f"after {junk[:40]!r}: {unmet}") from None


@framing.check("FRAME-1", "a line that is no JSON is survived")
async def _(driver: AgentDriver) -> None:
    await _check_survives(driver, b"this is no frame\n")
    await _check_survives(driver, b'{"jsonrpc": "2.0", "id": 1, "met\n')


@framing.check("FRAME-2", "JSON that is no object is survived")
async def _(driver: AgentDriver) -> None:
    for junk in (b"42\n", b"null\n", b'"text"\n', b"[]\n"):
        await _check_survives(driver, junk)


@framing.check("FRAME-3", "a line that is no JSON is answered with -32700", "should")
async def _(driver: AgentDriver) -> None:
    driver.sent_junk = True
    driver.parse_errors.clear()
    driver.send_raw(b"this is no frame\n")
    await driver.wait_until(lambda: bool(driver.parse_errors), RESPONSE_TIMEOUT)
    codes = [error.get("code") for error in driver.parse_errors]
    require(codes == [-32700], f"it answered {codes or 'nothing'}")


@framing.check("FRAME-4", "blank lines and Windows line ends are taken")
async def _(driver: AgentDriver) -> None:
    driver.send_raw(b"\n\r\n   \n")
    asking = asyncio.ensure_future(driver.expect_error("comply/still_there", {}))
    await asyncio.sleep(0)
    driver.send_raw(b"\r\n")
    await asking


@framing.check("FRAME-5", "a frame that comes in pieces is taken, and an id that is a text comes back as it was")
async def _(driver: AgentDriver) -> None:
    number = "comply-é-1"
    await driver.send_in_chunks(number, "comply/in_pieces", {})
    require(await driver.wait_until(lambda: number in driver.responses), "no answer with that id came")


@framing.check("FRAME-6", "a frame of two megabytes is taken")
async def _(driver: AgentDriver) -> None:
    await driver.expect_error("comply/large", {"filling": "x" * 2_000_000})
