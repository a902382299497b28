"""Checks of how a conversation begins, of errors, and of lines that are no frames."""

import asyncio

from ostler.app.comply.bench import Bench, text
from ostler.app.comply.check import Unmet, Writing, demand
from ostler.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

SOON = 5.0
handshake = Writing("handshake", initialized=False)
errors = Writing("errors")
framing = Writing("framing")


@handshake.check("INIT-1", "initialize is answered with protocol version 1")
async def _(bench: Bench) -> None:
    await bench.initialize()
    version = bench.told.get("protocolVersion")
    demand(version == 1, f"it answered version {version!r}")


@handshake.check("INIT-2", "a version that nobody speaks is answered with one it speaks, not with an error")
async def _(bench: Bench) -> None:
    again = Bench(bench.subject, bench.seen)
    await again.start()
    try:
        told = await again.request("initialize", {"protocolVersion": 65535, "clientCapabilities": {}})
    except RpcError as error:
        raise Unmet(f"it answered with the error {error.code}: {error.message}") from None
    finally:
        await again.stop()
    version = told.get("protocolVersion") if isinstance(told, dict) else None
    demand(isinstance(version, int) and version < 65535, f"it answered version {version!r}")


@handshake.check("INIT-3", "capabilities and _meta that it does not know are ignored")
async def _(bench: Bench) -> None:
    again = Bench(bench.subject, bench.seen)
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
async def _(bench: Bench) -> None:
    error = await bench.refusal("comply/no_such_method", {})
    demand(error.code == METHOD_NOT_FOUND, f"it answered {error.code}: {error.message}")


@errors.check("ERR-2", "an extension method that it does not have is answered")
async def _(bench: Bench) -> None:
    try:
        await bench.request("_comply/no_such_extension", {})
    except RpcError as error:
        demand(error.code == METHOD_NOT_FOUND, f"it answered {error.code}: {error.message}")


@errors.check("ERR-3", "parameters that are missing are an error")
async def _(bench: Bench) -> None:
    await bench.refusal("session/new", {})


@errors.check("ERR-4", "wrong parameters are told as -32602", "should")
async def _(bench: Bench) -> None:
    error = await bench.refusal("session/new", {"cwd": 7, "mcpServers": []})
    demand(error.code == INVALID_PARAMS, f"it answered {error.code}: {error.message}")


@errors.check("ERR-5", "a notification that it does not know is ignored")
async def _(bench: Bench) -> None:
    bench.peer.notify("comply/no_such_notification", {"sessionId": "x"})
    bench.peer.notify("_comply/no_such_notification", {})
    await bench.new()


@errors.check("ERR-6", "a session that is not there is an error")
async def _(bench: Bench) -> None:
    block = [text(bench.subject.prompt)]
    await bench.refusal("session/prompt", {"sessionId": "comply-no-such-session", "prompt": block})


@errors.check("ERR-7", "_meta never takes the place of a parameter")
async def _(bench: Bench) -> None:
    await bench.refusal("session/new", {"mcpServers": [], "_meta": {"cwd": bench.subject.cwd}})


@errors.check("ERR-8", "a relative cwd is refused", "should")
async def _(bench: Bench) -> None:
    await bench.refusal("session/new", {"cwd": "not/absolute", "mcpServers": []})


async def _survives(bench: Bench, junk: bytes) -> None:
    bench.sent_junk = True
    bench.raw(junk)
    try:
        await bench.refusal("comply/still_there", {})
    except Unmet as unmet:
        raise Unmet(f"after {junk[:40]!r}: {unmet}") from None


@framing.check("FRAME-1", "a line that is no JSON is survived")
async def _(bench: Bench) -> None:
    await _survives(bench, b"this is no frame\n")
    await _survives(bench, b'{"jsonrpc": "2.0", "id": 1, "met\n')


@framing.check("FRAME-2", "JSON that is no object is survived")
async def _(bench: Bench) -> None:
    for junk in (b"42\n", b"null\n", b'"text"\n', b"[]\n"):
        await _survives(bench, junk)


@framing.check("FRAME-3", "a line that is no JSON is answered with -32700", "should")
async def _(bench: Bench) -> None:
    bench.sent_junk = True
    bench.refused.clear()
    bench.raw(b"this is no frame\n")
    await bench.until(lambda: bool(bench.refused), SOON)
    codes = [error.get("code") for error in bench.refused]
    demand(codes == [-32700], f"it answered {codes or 'nothing'}")


@framing.check("FRAME-4", "blank lines and Windows line ends are taken")
async def _(bench: Bench) -> None:
    bench.raw(b"\n\r\n   \n")
    asking = asyncio.ensure_future(bench.refusal("comply/still_there", {}))
    await asyncio.sleep(0)
    bench.raw(b"\r\n")
    await asking


@framing.check("FRAME-5", "a frame that comes in pieces is taken, and an id that is a text comes back as it was")
async def _(bench: Bench) -> None:
    number = "comply-é-1"
    await bench.by_hand(number, "comply/in_pieces", {})
    demand(await bench.until(lambda: number in bench.by_id), "no answer with that id came")


@framing.check("FRAME-6", "a frame of two megabytes is taken")
async def _(bench: Bench) -> None:
    await bench.refusal("comply/large", {"filling": "x" * 2_000_000})
