"""The scripted server is strict: what was not played, or not scripted, is an error."""

import asyncio

import httpx2
import pytest

from ostler.testing.model_server import ScriptedModelServer, ScriptMismatchError, calls, stall, text

ASK = {"model": "m", "messages": [], "stream": False}


async def post(server, path="/chat/completions", body=None):
    async with httpx2.AsyncClient() as http:
        return await http.post(server.base_url + path, json=body or ASK)


async def test_replies_that_nobody_asked_for():
    with pytest.raises(ScriptMismatchError, match="1 replies were never asked for"):
        async with ScriptedModelServer(text("a"), text("b")) as server:
            await post(server)


async def test_requests_that_nobody_scripted():
    with pytest.raises(ScriptMismatchError, match="POST /v1/messages"):
        async with ScriptedModelServer() as server:
            assert (await post(server, "/messages")).status_code == 500


async def test_an_error_in_the_block_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        async with ScriptedModelServer(text("never asked for")):
            raise ZeroDivisionError


async def test_both_wires_and_what_is_recorded():
    async with ScriptedModelServer(calls([("read", {"a": 1})]), text("hi"), models=["x"]) as server:
        first = (await post(server)).json()
        second = (await post(server, "/messages")).json()
        async with httpx2.AsyncClient() as http:
            listed = (await http.get(server.base_url + "/models")).json()
            assert (await http.get(server.base_url + "/nothing")).status_code == 404
    assert first["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"a": 1}'}
    assert second["content"] == [{"type": "text", "text": "hi"}]
    assert [model["id"] for model in listed["data"]] == ["x"]
    assert [request.path for request in server.requests] == ["/v1/chat/completions", "/v1/messages"]
    assert server.requests[0].json == ASK


async def test_a_script_can_grow_and_requests_can_be_waited_for():
    async with ScriptedModelServer() as server:
        server.add_replies(text("a"))
        task = asyncio.create_task(post(server))
        await server.wait_for_requests(1)
        assert (await task).status_code == 200


async def test_leaving_ends_those_who_still_wait():
    async with ScriptedModelServer(stall()) as server:
        task = asyncio.create_task(post(server))
        await server.wait_for_requests(1)
    with pytest.raises(httpx2.TransportError):
        await task
