"""Servers as real processes: both eras, calls, faults, restarts, and nothing left behind."""

import asyncio
import json
import time

import pytest
from tests.mcp.conftest import is_running

from ostler.core.errors import ToolError
from ostler.core.permission import QuestionReply
from ostler.mcp import tool_list_cache
from ostler.mcp.connection import ServerGone

pytestmark = pytest.mark.req("MC-1", "MC-2")


async def decline(question):
    return QuestionReply("decline")


def content(result):
    return result["content"][0]["text"]


@pytest.mark.req("MC-6")
@pytest.mark.parametrize(
    ("era", "protocol"),
    [
        ("modern", "2026-07-28"),
        ("both", "2026-07-28"),
        ("legacy", "2025-06-18"),
        ("fragile", "2025-06-18"),
    ],
)
async def test_server_of_each_era_is_used(servers, era, protocol):
    server = servers.make("--era", era, "--instructions", "Use echo.")
    assert content(await server.call("echo", {"text": "hi"}, decline)) == "fake: hi"
    assert server.description.protocol == protocol
    assert server.description.instructions == "Use echo."
    assert server.status.state == "ready"


@pytest.mark.req("MC-6")
async def test_legacy_server_that_does_not_answer_the_probe_is_used_and_its_era_remembered(servers, monkeypatch):
    monkeypatch.setattr("ostler.mcp.client.PROBE_SECONDS", 0.2)
    server = servers.make("--era", "silent")
    await server.client()
    assert server.description.era == "legacy"
    await server.aclose()
    again = servers.make("--era", "silent")
    await again.client()
    assert servers.frames().count("server/discover") == 1


@pytest.mark.req("MC-6")
async def test_cached_era_that_is_wrong_is_probed_again(servers):
    await servers.make("--era", "legacy").client()
    cached = servers.cache.load(servers.made[0].entry.digest)
    changed = servers.make("--era", "modern")
    servers.cache.save(changed.entry.digest, cached)
    changed._load_cache()
    await changed.client()
    assert changed.description.era == "modern"


async def test_tool_list_has_all_pages(servers):
    server = servers.make("--mode", "pages")
    await server.client()
    assert len(server.tools) == 13
    assert server.tools[-1].name == "grow"


async def test_known_tools_are_listed_without_starting_the_server(servers):
    await servers.make().client()
    await servers.made[0].aclose()
    again = servers.make()
    assert [tool.name for tool in again.tools] == [tool.name for tool in servers.made[0].tools]
    assert again.status.state == "stopped"
    assert not again.needs_start
    assert len(servers.pids()) == 1


async def test_list_for_a_session_without_a_user_is_not_used_with_one(servers):
    await servers.make("--mode", "picky", interactive=False).client()
    await servers.made[0].aclose()
    again = servers.make("--mode", "picky", interactive=True)
    assert again.tools  # until it is started
    assert again.needs_start
    await again.client()
    assert again.find_tool("ask")
    assert not servers.make("--mode", "picky", interactive=False).find_tool("ask")


@pytest.mark.parametrize(("ttl", "seconds", "is_fresh"), [(60_000, 59, True), (60_000, 61, False), (0, 61, True)])
async def test_tool_list_is_used_as_long_as_the_server_says(servers, monkeypatch, ttl, seconds, is_fresh):
    await servers.make("--ttl", str(ttl)).client()
    now = time.time()
    monkeypatch.setattr(tool_list_cache.time, "time", lambda: now + seconds)
    assert servers.make("--ttl", str(ttl)).needs_start == (not is_fresh)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_announced_tool_is_listed(servers, era):
    server = servers.make("--era", era)
    await server.client()
    changed = asyncio.Event()
    server.on_change = lambda server: changed.set() if server.find_tool("grown") else None
    await server.call("grow", {}, decline)
    async with asyncio.timeout(20):
        await changed.wait()


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_progress_is_reported_and_restarts_the_timeout(servers, era):
    server = servers.make("--era", era, call_timeout=0.75)
    seen = []
    assert content(await server.call("slow", {}, decline, seen.append)) == "finished"
    assert [(progress.progress, progress.total, progress.message) for progress in seen] == [
        (1, 3, "step 1"),
        (2, 3, "step 2"),
        (3, 3, "step 3"),
    ]


async def test_call_that_takes_too_long_is_cancelled_on_the_server(servers):
    server = servers.make(call_timeout=0.3)
    with pytest.raises(ToolError, match=r"did not answer tools/call within 0\.3 s"):
        await server.call("wait", {}, decline)
    await server.call("echo", {"text": "still there"}, decline)
    assert "notifications/cancelled" in servers.frames()


async def test_cancelled_call_is_cancelled_on_the_server(servers):
    server = servers.make()
    await server.client()
    call = asyncio.ensure_future(server.call("wait", {}, decline))
    while '"wait"' not in servers.frames():
        await asyncio.sleep(0.01)
    call.cancel()
    await asyncio.wait({call})
    await server.call("echo", {"text": "x"}, decline)
    assert "notifications/cancelled" in servers.frames()


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (QuestionReply("accept", {"colour": "red"}), {"action": "accept", "content": {"colour": "red"}}),
        (QuestionReply("decline"), {"action": "decline"}),
    ],
)
async def test_question_of_a_server_is_answered_within_the_call(servers, era, reply, expected):
    server, questions = servers.make("--era", era), []

    async def ask(question):
        questions.append(question)
        return reply

    assert json.loads(content(await server.call("ask", {}, ask))) == expected
    assert [question.text for question in questions] == ["Which colour?"]


@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_call_is_repeated_after_the_user_opened_the_url_that_the_server_needs(servers, action):
    """As in protocol version 2025-11-25."""
    server, questions = servers.make("--era", "legacy"), []

    async def ask(question):
        questions.append(question)
        return QuestionReply(action)

    if action == "accept":
        assert content(await server.call("connect", {}, ask)) == "connected"
    else:
        with pytest.raises(ToolError, match="This needs a connection"):
            await server.call("connect", {}, ask)
    assert [(question.text, question.url) for question in questions] == [
        ("Connect first", "https://example.com/connect")
    ]


async def test_call_of_a_server_that_ends_fails_at_once_and_the_next_one_starts_it_again(servers):
    server = servers.make()
    with pytest.raises(ServerGone, match="exit code 7; last output: going down"):
        await server.call("crash", {}, decline)
    assert server.status.state == "failed"
    assert content(await server.call("echo", {"text": "back"}, decline)) == "fake: back"
    assert len(servers.pids()) == 2


async def test_parallel_calls_share_one_restart(servers):
    server = servers.make()
    await server.client()
    calls = [server.call("wait", {}, decline) for _ in range(3)]
    ended = await asyncio.gather(*calls, server.call("crash", {}, decline), return_exceptions=True)
    assert all(isinstance(error, ServerGone) for error in ended)
    results = await asyncio.gather(*(server.call("echo", {"text": str(n)}, decline) for n in range(5)))
    assert [content(result) for result in results] == [f"fake: {n}" for n in range(5)]
    assert len(servers.pids()) == 2


async def test_restarts_are_limited_until_the_user_asks(servers):
    server = servers.make()
    for _ in range(3):
        with pytest.raises(ServerGone):
            await server.call("crash", {}, decline)
    with pytest.raises(ToolError, match="/mcp restart"):
        await server.call("echo", {"text": "x"}, decline)
    assert not server.is_usable
    assert len(servers.pids()) == 3
    await server.restart()
    assert content(await server.call("echo", {"text": "x"}, decline)) == "fake: x"


@pytest.mark.parametrize(
    ("mode", "timeout", "message"),
    [
        ("exit", 2.0, "exit code 1; last output: bad configuration"),
        ("never", 0.5, "did not start within|did not answer"),
        ("garbage", 2.0, "prints text that is not JSON-RPC|did not start"),
        ("flood", 0.5, "did not start within|did not answer"),
    ],
)
async def test_broken_server_fails_with_the_reason(servers, mode, timeout, message):
    server = servers.make("--mode", mode, start_timeout=timeout)
    with pytest.raises(ToolError, match=message):
        await server.client()
    assert server.status.state == "failed"


async def test_server_without_program_fails_with_the_reason(servers):
    server = servers.make(command=("no-such-program-here",))
    with pytest.raises(ToolError, match="no-such-program-here"):
        await server.client()


async def test_stderr_goes_to_the_log(servers):
    server = servers.make("--mode", "exit")
    await server.start_in_background()
    assert b"bad configuration" in servers.stderr


async def test_disabled_server_is_stopped_and_can_be_enabled(servers):
    server = servers.make()
    await server.client()
    await server.disable()
    assert not is_running(servers.pids()[0])
    with pytest.raises(ToolError, match="disabled"):
        await server.call("echo", {"text": "x"}, decline)
    await server.restart()
    assert server.status.state == "ready"


async def test_nothing_is_left_of_a_server_that_is_closed_during_its_start(servers):
    for _ in range(5):
        server = servers.make("--mode", "never")
        task = asyncio.ensure_future(server.start_in_background())
        before = len(servers.pids())
        while len(servers.pids()) == before:
            await asyncio.sleep(0.01)
        await server.aclose()
        await asyncio.wait({task})
    assert not any(is_running(pid) for pid in servers.pids())


async def test_giant_result_is_shortened(servers):
    server = servers.make()
    result = await server.call("big", {}, decline)
    assert len(content(result)) < 3_000_000
    assert "[...]" in content(result)


async def test_only_allowed_tools_are_listed(servers):
    server = servers.make(tools=(("*", False), ("e*", True), ("environment", False)))
    await server.client()
    assert [tool.name for tool in server.tools] == ["echo"]
