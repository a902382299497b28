"""Checks of sessions: new, loaded, resumed, listed, closed, deleted."""

import os

from ostler.app.comply.bench import Bench, text
from ostler.app.comply.check import NotOffered, Unmet, Writing, demand
from ostler.wire.jsonrpc import RpcError

MOST_PAGES = 100
LEAVES = 5.0
sessions = Writing("sessions")


def offered(bench: Bench, what: str) -> None:
    """Only what the agent says it can do is asked of it."""
    can = bench.told.get("agentCapabilities") or {}
    found = can.get("loadSession") if what == "load" else (can.get("sessionCapabilities") or {}).get(what)
    if found is None or found is False:
        raise NotOffered(f"it does not offer session/{what}")


async def _with_a_turn(bench: Bench) -> str:
    session = (await bench.new())["sessionId"]
    await bench.prompt(session)
    return str(session)


async def _earlier(bench: Bench) -> str:
    """A session of another process of the same agent that is over, as after a restart of the editor."""
    other = Bench(bench.subject, bench.seen)
    await other.start()
    try:
        await other.initialize()
        session = await _with_a_turn(other)
        await other.ended(LEAVES)
    finally:
        await other.stop()
    return session


@sessions.check("SESS-1", "session/new gives an id, and each session its own")
async def _(bench: Bench) -> None:
    first, second = await bench.new(), await bench.new()
    demand(first["sessionId"] != second["sessionId"], "two sessions have one id")


@sessions.check("SESS-2", "additional directories are taken")
async def _(bench: Bench) -> None:
    offered(bench, "additionalDirectories")
    await bench.new(additionalDirectories=[os.path.dirname(bench.subject.cwd) or "/"])


@sessions.check("SESS-3", "session/load tells what was said before it answers, in another process too")
async def _(bench: Bench) -> None:
    offered(bench, "load")
    session = await _earlier(bench)
    await bench.request("session/load", {"sessionId": session, "cwd": bench.subject.cwd, "mcpServers": []})
    kinds = bench.kinds(session)
    for kind in ("user_message_chunk", "agent_message_chunk"):
        demand(kind in kinds, f"no {kind} came before the answer")


@sessions.check("SESS-4", "session/resume goes on without telling what was said")
async def _(bench: Bench) -> None:
    offered(bench, "resume")
    session = await _earlier(bench)
    await bench.request("session/resume", {"sessionId": session, "cwd": bench.subject.cwd, "mcpServers": []})
    told = [kind for kind in bench.kinds(session) if kind.endswith("message_chunk")]
    demand(not told, "it told the history")
    demand(await bench.prompt(session) == "end_turn", "a turn in it did not end well")


@sessions.check("SESS-5", "a session that is not there can be neither loaded nor resumed")
async def _(bench: Bench) -> None:
    offered(bench, "load")
    place = {"sessionId": "comply-no-such-session", "cwd": bench.subject.cwd, "mcpServers": []}
    await bench.refusal("session/load", place)


@sessions.check("SESS-6", "session/list has a session with a turn in it")
async def _(bench: Bench) -> None:
    offered(bench, "list")
    session = await _with_a_turn(bench)
    demand(session in await _listed(bench), "it is not listed")


@sessions.check("SESS-7", "a closed session takes no prompts")
async def _(bench: Bench) -> None:
    offered(bench, "close")
    session = (await bench.new())["sessionId"]
    await bench.request("session/close", {"sessionId": session})
    await bench.refusal("session/prompt", {"sessionId": session, "prompt": [text(bench.subject.prompt)]})


@sessions.check("SESS-8", "a deleted session is not listed any more")
async def _(bench: Bench) -> None:
    offered(bench, "delete")
    session = await _with_a_turn(bench)
    try:
        await bench.request("session/delete", {"sessionId": session})
    except RpcError as error:
        raise Unmet(f"it answered {error.code}: {error.details}") from None
    offered(bench, "list")
    demand(session not in await _listed(bench), "it is still listed")


async def _listed(bench: Bench) -> set[str]:
    found: set[str] = set()
    params = {"cwd": bench.subject.cwd}
    for _ in range(MOST_PAGES):
        page = await bench.request("session/list", params)
        found |= {str(one.get("sessionId")) for one in page.get("sessions", ()) if isinstance(one, dict)}
        if not page.get("nextCursor"):
            break
        params["cursor"] = str(page["nextCursor"])
    return found
