"""The scripted server is strict: unused replies and unexpected requests are errors."""

import asyncio

import httpx2
import pytest

from ostler.testing.model_server import ScriptedModelServer, ScriptMismatchError, calls, stall, text

BODY = {"model": "m", "messages": [], "stream": False}


async def post(server, path="/chat/completions", body=None):
    async with httpx2.AsyncClient() as http:
        return await http.post(server.base_url + path, json=body or BODY)


async def test_unused_replies_are_an_error():
    with pytest.raises(ScriptMismatchError, match="1 scripted replies were not requested"):
        async with ScriptedModelServer(text("a"), text("b")) as server:
            await post(server)


async def test_unexpected_requests_are_an_error():
    with pytest.raises(ScriptMismatchError, match="POST /v1/messages"):
        async with ScriptedModelServer() as server:
            assert (await post(server, "/messages")).status_code == 500


async def test_error_in_the_context_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        async with ScriptedModelServer(text("unused")):
            raise ZeroDivisionError


async def test_both_apis_and_recorded_requests():
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
    assert server.requests[0].json == BODY


async def test_replies_can_be_added_and_requests_awaited():
    async with ScriptedModelServer() as server:
        server.add_replies(text("a"))
        task = asyncio.create_task(post(server))
        await server.wait_for_requests(1)
        assert (await task).status_code == 200


async def test_exit_closes_waiting_connections():
    async with ScriptedModelServer(stall()) as server:
        task = asyncio.create_task(post(server))
        await server.wait_for_requests(1)
    with pytest.raises(httpx2.TransportError):
        await task
