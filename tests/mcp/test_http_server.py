"""Remote servers over streamable HTTP: both eras, event streams, sessions, tokens and faults."""

import asyncio
import json

import pytest
from tests.mcp.fake_http_server import ECHO, FakeHttpServer

from ostler.core.errors import ToolError
from ostler.core.permission import QuestionReply
from ostler.mcp.connection import ServerGone
from ostler.mcp.http_connection import connect_http
from ostler.mcp.server import McpServer
from ostler.mcp.server_entry import ServerEntry
from ostler.mcp.tool_list_cache import ToolListCache

pytestmark = pytest.mark.req("MC-6")


async def decline(question):
    return QuestionReply("decline")


@pytest.fixture
async def connect(tmp_path):
    made = []

    def make(url, **changes):
        entry = ServerEntry("far", url=url, **{"start_timeout": 10.0, "call_timeout": 10.0, **changes})

        async def open_connection(handler):
            return await connect_http(entry, handler, {})

        made.append(McpServer(entry, open_connection, ToolListCache(tmp_path), "1", interactive=False))
        return made[-1]

    yield make
    for server in made:
        await server.aclose()


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("streams", [False, True])
async def test_tool_of_a_remote_server_is_called(connect, era, streams):
    with FakeHttpServer(era, streams=streams) as far:
        server, progress = connect(far.url), []
        result = await server.call("echo", {"text": "hi"}, decline, progress.append)
        assert result["content"][0]["text"] == "far: hi"
        assert server.description.era == era
        assert bool(progress) == streams
        await server.aclose()
    assert ("DELETE" in far.methods()) == (era == "legacy")


@pytest.mark.parametrize("streams", [False, True])
async def test_answer_may_be_an_array_of_messages(connect, streams):
    with FakeHttpServer("legacy", streams=streams) as far:
        far.batches = True
        progress = []
        result = await connect(far.url).call("echo", {"text": "hi"}, decline, progress.append)
    assert result["content"][0]["text"] == "far: hi"
    assert len(progress) == 1


async def test_answer_to_another_request_is_not_used(connect):
    with FakeHttpServer() as far:
        far.wrong_ids = True
        with pytest.raises(ToolError, match="answered another request"):
            await connect(far.url).call("echo", {"text": "hi"}, decline)


async def test_expired_session_is_opened_again(connect):
    with FakeHttpServer("legacy") as far:
        server = connect(far.url)
        await server.client()
        far.sessions.clear()
        with pytest.raises(ServerGone, match="session has expired"):
            await server.call("echo", {}, decline)
        far.sessions.add("session-1")
        assert await server.call("echo", {}, decline)
    assert far.methods().count("initialize") == 2


async def test_call_whose_answer_is_cut_is_not_repeated(connect):
    with FakeHttpServer() as far:
        server = connect(far.url)
        with pytest.raises(ServerGone):
            await server.call("cut", {}, decline)
    assert far.methods().count("tools/call") == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_answer_that_a_legacy_server_interrupts_is_read_to_its_end(connect, era):
    """The request is sent once; only the rest of the answer is read on a new connection."""
    with FakeHttpServer(era) as far:
        far.interrupts = True
        server = connect(far.url)
        if era == "modern":
            with pytest.raises(ServerGone):
                await server.call("echo", {"text": "hi"}, decline)
        else:
            result = await server.call("echo", {"text": "hi"}, decline)
            assert result["content"][0]["text"] == "far: hi"
            assert far.resumed_at == ["event-1"]
    assert far.methods().count("tools/call") == 1


async def test_call_that_takes_too_long_ends(connect):
    with FakeHttpServer() as far:
        with pytest.raises(ToolError, match="did not answer"):
            await connect(far.url, call_timeout=0.3).call("wait", {}, decline)
        far.released.set()


async def test_legacy_server_is_told_that_a_call_was_cancelled(connect):
    with FakeHttpServer("legacy") as far:
        server = connect(far.url)
        call = asyncio.create_task(server.call("wait", {}, decline))
        while "tools/call" not in far.methods():
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.wait({call})
        async with asyncio.timeout(10):
            while "notifications/cancelled" not in far.methods():
                await asyncio.sleep(0.01)
        cancelled = next(body for _, body in far.requests if body.get("method") == "notifications/cancelled")
        called = next(body for _, body in far.requests if body.get("method") == "tools/call")
        assert cancelled["params"]["requestId"] == called["id"]
        far.released.set()


async def test_missing_token_is_an_error_that_says_what_to_do(connect):
    with FakeHttpServer(token="t0ken") as far:
        server = connect(far.url)
        with pytest.raises(ToolError, match="HTTP 401"):
            await server.client()
        assert await connect(far.url, headers={"Authorization": "Bearer t0ken"}).client()


async def test_server_that_is_down_fails_with_its_address(connect):
    with FakeHttpServer() as far:
        url = far.url
    with pytest.raises(ToolError, match=r"127\.0\.0\.1"):
        await connect(url).client()


async def test_server_that_refuses_the_version_once_is_asked_again_if_it_names_the_same_version(connect):
    with FakeHttpServer() as far:
        far.refused_probes = 1
        await connect(far.url).client()
    assert far.methods().count("server/discover") == 2


async def test_server_that_always_refuses_its_own_version_fails(connect):
    with FakeHttpServer() as far:
        far.refused_probes = 99
        with pytest.raises(ToolError, match="supports protocol versions 2026-07-28"):
            await connect(far.url).client()


async def test_messages_of_a_legacy_server_outside_of_answers_are_read(connect):
    with FakeHttpServer("legacy") as far:
        far.has_stream = True
        server, changed = connect(far.url), asyncio.Event()
        await server.client()
        far.tools = [{"name": "new"}]
        server.on_change = lambda server: changed.set() if server.find_tool("new") else None
        far.pushed.put({"method": "notifications/tools/list_changed"})
        async with asyncio.timeout(10):
            await changed.wait()
        await server.aclose()


async def test_arguments_are_repeated_in_the_headers_that_the_server_declares(connect):
    field = {"type": "string", "x-mcp-header": "Region"}
    tool = {**ECHO, "inputSchema": {"type": "object", "properties": {"region": field, "text": {"type": "string"}}}}
    broken = {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"x-mcp-header": "a b"}}}}
    with FakeHttpServer() as far:
        far.tools = [broken, tool]
        server = connect(far.url)
        await server.call("echo", {"region": "zürich", "text": "x"}, decline)
        assert [tool.name for tool in server.tools] == ["echo"]
    headers, _ = far.requests[-1]
    assert headers["mcp-param-region"] == "=?base64?esO8cmljaA==?="


@pytest.mark.req("MC-4")
def test_stored_token_goes_only_to_its_host(ostler):
    with FakeHttpServer(token="t0ken-for-tests") as far, FakeHttpServer() as other:
        assert ostler("mcp", "add", "far", far.url).code == 0
        assert ostler("mcp", "add", "other", other.url).code == 0
        refused = ostler("mcp", "test", "far")
        assert refused.code == 1
        assert "ostler mcp token" in refused.stdout
        assert ostler("mcp", "token", "far", stdin="t0ken-for-tests\n").code == 0
        assert ostler("mcp", "test", "far").code == 0
        assert ostler("mcp", "test", "other").code == 0
        done = ostler("tool", "call", "--allow", "far_*", "far_echo", '{"text": "x"}')
        assert json.loads(done.stdout)["for_model"] == "far: x"
    assert not any("authorization" in headers for headers, _ in other.requests)
