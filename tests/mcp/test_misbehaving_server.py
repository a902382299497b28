"""Servers that misbehave: endless lists, questions and announcements, and processes that do not want to end."""

import asyncio

import pytest
from tests.mcp.conftest import is_running
from tests.tiers import amount

from ostler.core.errors import ToolError
from ostler.core.permission import QuestionReply
from ostler.mcp.client import answer_request
from ostler.mcp.connection import ServerGone

pytestmark = pytest.mark.req("MC-2", "MC-3")


async def decline(question):
    return QuestionReply("decline")


async def test_endless_list_of_tools_is_cut(servers):
    server = servers.make("--mode", "endless")
    await server.client()
    assert 0 < len(server.tools) <= 128
    assert servers.frames().count('"tools/list"') == 100


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_server_that_announces_a_change_with_each_list_is_not_listed_all_the_time(servers, era):
    server = servers.make("--mode", "relist", "--era", era)
    await server.client()
    for number in range(20):
        await server.call("echo", {"text": str(number)}, decline)
        await asyncio.sleep(0.05)  # a second in which the server could be listed hundreds of times
    assert servers.frames().count('"tools/list"') <= 6


async def test_change_that_is_announced_during_a_list_is_not_missed(servers):
    server = servers.make()
    await server.client()
    server._refresh()
    await server.call("grow", {}, decline)
    async with asyncio.timeout(20):
        while not server.find_tool("grown"):
            await asyncio.sleep(0.02)


async def test_schema_that_is_too_deep_to_read_fails_only_its_server(servers):
    server = servers.make("--mode", "deep", start_timeout=3.0)
    await server.start_in_background()
    assert server.status.state in ("failed", "ready")
    assert not server.tools or server.tools[0].name == "d"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_endless_questions_end(servers, era):
    server, questions = servers.make("--era", era, call_timeout=1.0), []

    async def ask(question):
        questions.append(question)
        return QuestionReply("accept", {"colour": "red"})

    with pytest.raises(ToolError):
        await server.call("ask_forever", {}, ask)
    assert len(questions) == 10


@pytest.mark.parametrize(
    "params",
    [
        {"message": "x"},
        {
            "message": "x",
            "requestedSchema": {"properties": {str(number): {"type": "string"} for number in range(2000)}},
        },
        {"message": "x", "url": "javascript:alert(1)"},
        {"message": "x", "url": "file:///etc/passwd"},
        {"message": "x", "url": 7, "requestedSchema": 7},
    ],
)
async def test_question_that_cannot_be_shown_is_declined(params):
    async def ask(question):
        raise AssertionError(question)

    assert await answer_request(params, ask) == {"action": "decline"}


async def test_question_outside_of_a_call_is_declined(servers):
    server = servers.make("--mode", "eager", "--era", "legacy")
    await server.client()
    await server.call("echo", {"text": "x"}, decline)
    assert '"id":"early","result":{"action":"decline"}' in servers.frames().replace(" ", "")


async def test_call_with_an_unknown_outcome_is_sent_once(servers):
    server = servers.make()
    with pytest.raises(ServerGone):
        await server.call("crash", {}, decline)
    await server.call("echo", {"text": "x"}, decline)
    assert servers.frames().count('"name":"crash"') == 1


async def test_server_that_ignores_signals_and_its_children_are_stopped(servers):
    server = servers.make("--mode", "stubborn")
    await server.call("echo", {"text": "x"}, decline)
    assert len(servers.pids()) == 2
    assert all(map(is_running, servers.pids()))
    await server.aclose()
    assert not any(map(is_running, servers.pids()))


async def test_no_process_is_left_after_many_starts_and_stops(servers):
    names = [f"server{number}" for number in range(10)]
    made = [servers.make(name=name) for name in names]
    rounds = amount(2, slow=10)
    for _ in range(rounds):
        await asyncio.gather(*(server.restart() for server in made))
        assert all(server.status.state == "ready" for server in made)
    await asyncio.gather(*(server.aclose() for server in made))
    pids = [pid for name in names for pid in servers.pids(name)]
    assert len(pids) == 10 * rounds
    assert not any(map(is_running, pids))
