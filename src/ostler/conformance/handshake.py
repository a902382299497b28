"""Checks of the handshake, error answers and malformed lines."""

from ostler.conformance.agent_driver import AgentDriver, text_block
from ostler.conformance.check import Area, CheckFailed, require
from ostler.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

RESPONSE_TIMEOUT = 5.0
handshake = Area("handshake", initialized=False)
errors = Area("errors")
framing = Area("framing")


@handshake.check("INIT-1", "initialize is answered with protocol version 1")
async def _(driver: AgentDriver) -> None:
    await driver.initialize()
    version = driver.agent_info.get("protocolVersion")
    require(version == 1, f"it answered version {version!r}")


@handshake.check("INIT-2", "an unknown protocol version is answered with a supported one, not with an error")
async def _(driver: AgentDriver) -> None:
    second = AgentDriver(driver.target, driver.observations)
    await second.start()
    try:
        answer = await second.request("initialize", {"protocolVersion": 65535, "clientCapabilities": {}})
    except RpcError as error:
        raise CheckFailed(f"it answered with the error {error.code}: {error.message}") from None
    finally:
        await second.stop()
    version = answer.get("protocolVersion") if isinstance(answer, dict) else None
    require(isinstance(version, int) and version < 65535, f"it answered version {version!r}")


@handshake.check("INIT-3", "unknown capabilities and _meta are ignored")
async def _(driver: AgentDriver) -> None:
    second = AgentDriver(driver.target, driver.observations)
    await second.start()
    capabilities = {"fs": {}, "telepathy": {"range": 7}, "_meta": {"moon": "full"}}
    try:
        await second.request(
            "initialize",
            {"protocolVersion": 1, "clientCapabilities": capabilities, "_meta": {"protocolVersion": 9}, "extra": [1]},
        )
    finally:
        await second.stop()


@errors.check("ERR-1", "an unknown method is answered with error -32601")
async def _(driver: AgentDriver) -> None:
    error = await driver.expect_error("comply/no_such_method", {})
    require(error.code == METHOD_NOT_FOUND, f"it answered {error.code}: {error.message}")


@errors.check("ERR-2", "an unknown extension method is answered")
async def _(driver: AgentDriver) -> None:
    try:
        await driver.request("_comply/no_such_extension", {})
    except RpcError as error:
        require(error.code == METHOD_NOT_FOUND, f"it answered {error.code}: {error.message}")


@errors.check("ERR-3", "missing parameters are answered with an error")
async def _(driver: AgentDriver) -> None:
    await driver.expect_error("session/new", {})


@errors.check("ERR-4", "invalid parameters are answered with error -32602", "should")
async def _(driver: AgentDriver) -> None:
    error = await driver.expect_error("session/new", {"cwd": 7, "mcpServers": []})
    require(error.code == INVALID_PARAMS, f"it answered {error.code}: {error.message}")


@errors.check("ERR-5", "an unknown notification is ignored")
async def _(driver: AgentDriver) -> None:
    driver.peer.notify("comply/no_such_notification", {"sessionId": "x"})
    driver.peer.notify("_comply/no_such_notification", {})
    await driver.new_session()


@errors.check("ERR-6", "an unknown session is answered with an error")
async def _(driver: AgentDriver) -> None:
    block = [text_block(driver.target.prompt)]
    await driver.expect_error("session/prompt", {"sessionId": "comply-no-such-session", "prompt": block})


@errors.check("ERR-7", "_meta does not replace a parameter")
async def _(driver: AgentDriver) -> None:
    await driver.expect_error("session/new", {"mcpServers": [], "_meta": {"cwd": driver.target.cwd}})


@errors.check("ERR-8", "a relative cwd is rejected", "should")
async def _(driver: AgentDriver) -> None:
    await driver.expect_error("session/new", {"cwd": "not/absolute", "mcpServers": []})


async def _check_survives(driver: AgentDriver, junk: bytes) -> None:
    driver.sent_junk = True
    driver.send_raw(junk)
    try:
        await driver.expect_answer()
    except CheckFailed as failure:
        raise CheckFailed(f"after {junk[:40]!r}: {failure}") from None


@framing.check("FRAME-1", "the agent survives a line that is not JSON")
async def _(driver: AgentDriver) -> None:
    await _check_survives(driver, b"this is not a frame\n")
    await _check_survives(driver, b'{"jsonrpc": "2.0", "id": 1, "met\n')


@framing.check("FRAME-2", "the agent survives JSON that is not an object", "should")
async def _(driver: AgentDriver) -> None:
    for junk in (b"42\n", b"null\n", b'"text"\n', b"[]\n"):
        await _check_survives(driver, junk)


@framing.check("FRAME-3", "a line that is not JSON is answered with error -32700", "should")
async def _(driver: AgentDriver) -> None:
    driver.sent_junk = True
    driver.parse_errors.clear()
    driver.send_raw(b"this is not a frame\n")
    await driver.wait_until(lambda: bool(driver.parse_errors), RESPONSE_TIMEOUT)
    codes = [error.get("code") for error in driver.parse_errors]
    require(codes == [-32700], f"it answered {codes or 'nothing'}")


@framing.check("FRAME-4", "blank lines and Windows line endings are accepted")
async def _(driver: AgentDriver) -> None:
    driver.send_raw(b"\n\r\n   \n")
    await _check_chunks_answered(driver, "comply-windows", 4096, b"\r\n")


@framing.check("FRAME-5", "a frame sent in chunks is accepted, and a string id is returned unchanged")
async def _(driver: AgentDriver) -> None:
    await _check_chunks_answered(driver, "comply-é-1", 7, b"\n")


async def _check_chunks_answered(driver: AgentDriver, request_id: str, size: int, line_end: bytes) -> None:
    """Send a request that every agent knows, in chunks, and wait for any answer to it."""
    await driver.send_in_chunks(request_id, "session/new", driver.session_params(), size, line_end)
    require(await driver.wait_until(lambda: request_id in driver.responses), "no answer with this id arrived")
    driver.note_session(driver.responses[request_id].get("result"))


@framing.check("FRAME-6", "a frame of two megabytes is accepted")
async def _(driver: AgentDriver) -> None:
    await driver.expect_answer(_meta={"filling": "x" * 2_000_000})
