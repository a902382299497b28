"""Context windows of each kind of server, and which of several values is used."""

import json

import pytest
from model_helpers import make_request

from ostler.http.client import HttpClient
from ostler.http.dialer import Dialer
from ostler.models.base_url import parse_base_url
from ostler.models.context_windows import DEFAULT_WINDOW, ContextWindow, fetch_window, window_by_name
from ostler.testing.model_server import ScriptedModelServer, text

pytestmark = pytest.mark.req("MD-8")

VLLM = [{"id": "m", "max_model_len": 40_960, "owned_by": "vllm"}]
OLLAMA = [{"id": "m", "owned_by": "library"}]
LLAMA_CPP = [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 99_999}}]
LM_STUDIO = [{"id": "m", "owned_by": "organization_owner"}]
DETAILS = {"parameters": "temperature 1\nnum_ctx    16384\n", "model_info": {"q.context_length": 32_768}}
DETAILS_LARGE = {"model_info": {"qwen3.context_length": 40_960}}
RUNNING = {"models": [{"name": "m", "context_length": 4096}]}
LOADED = {"id": "m", "state": "loaded", "max_context_length": 32_768, "loaded_context_length": 4096}
NOT_LOADED = {"id": "m", "state": "not-loaded", "max_context_length": 32_768}


class Server(ScriptedModelServer):
    """Records requests to the server's own API. Loading a model sets its window to the requested one."""

    posted: list

    async def _send_page(self, recorded, writer):
        if recorded.method == "POST":
            self.posted.append((recorded.path, recorded.json))
            if recorded.path == "/api/v1/models/load":
                size = recorded.json["context_length"]
                self._pages["/api/v0/models"] = {"data": [LOADED | {"loaded_context_length": size}]}
        return await super()._send_page(recorded, writer)


def make_server(*replies, **options):
    server = Server(*replies, **options)
    server.posted = []
    return server


async def query_window(server, model="m", **options):
    base = parse_base_url(server.base_url)
    http = HttpClient(Dialer(base.origin))
    try:
        return await fetch_window(http, base, model, **options)
    finally:
        await http.aclose()


@pytest.mark.parametrize(
    ("models", "pages", "expected"),
    [
        (VLLM, {}, ContextWindow(40_960, True)),
        ([{"id": "m", "context_length": 131_072}], {}, ContextWindow(131_072, True)),
        (LLAMA_CPP, {"/props": {"default_generation_settings": {"n_ctx": 8192}}}, ContextWindow(8192, True)),
        (LLAMA_CPP, {"/props": {"default_generation_settings": None}}, None),
        (OLLAMA, {"/api/ps": RUNNING, "/api/show": DETAILS}, ContextWindow(4096, True)),
        (OLLAMA, {"/api/ps": {"models": []}, "/api/show": DETAILS}, ContextWindow(16_384, True)),
        (OLLAMA, {"/api/show": DETAILS_LARGE}, ContextWindow(40_960, False)),
        (OLLAMA, {"/api/show": {"parameters": "num_ctx 7", "model_info": 5}}, None),
        (OLLAMA, {}, None),
        (LM_STUDIO, {"/api/v0/models": {"data": [LOADED]}}, ContextWindow(4096, True)),
        (LM_STUDIO, {"/api/v0/models": {"data": [NOT_LOADED]}}, ContextWindow(32_768, False)),
        (LM_STUDIO, {"/api/v0/models": {"data": [None, 5, {"id": "other"}]}}, None),
        (LM_STUDIO, {}, None),
        ([{"id": "other", "max_model_len": 1024}], {}, None),
        ([{"id": "m", "max_model_len": "many"}], {}, None),
        ([{"id": "m", "max_model_len": -5}, {"id": "m", "max_model_len": 10**30}], {}, None),
        ([], {}, None),
    ],
)
async def test_window_reported_by_server(models, pages, expected):
    async with make_server(models=models, pages=pages) as server:
        assert await query_window(server) == expected


async def ollama_window(model, listed, owner):
    running = {"models": [{"name": "other:latest", "context_length": 2048}, {"name": listed, "context_length": 4096}]}
    pages = {"/api/ps": running, "/api/show": DETAILS_LARGE}
    async with make_server(models=[{"id": listed, "owned_by": owner}], pages=pages) as server:
        return await query_window(server, model=model)


@pytest.mark.parametrize(("model", "listed"), [("m", "m:latest"), ("M", "m:latest"), ("m:latest", "m:latest")])
async def test_ollama_finds_model_without_tag(model, listed):
    """The window in the model file is larger than the one in use, and Ollama silently truncates longer prompts."""
    assert await ollama_window(model, listed, "library") == ContextWindow(4096, True)


async def test_other_tag_is_another_model():
    assert await ollama_window("m:7b", "m:latest", "library") == ContextWindow(40_960, False)


@pytest.mark.parametrize("name", ["hf.co/somebody/m-GGUF:Q4_K_M", "somebody/m:latest"])
async def test_ollama_is_detected_by_models_of_other_owners(name):
    assert await ollama_window(name, name, "somebody") == ContextWindow(4096, True)


async def test_requested_window_is_set_when_loading():
    async with make_server(
        models=LM_STUDIO, pages={"/api/v0/models": {"data": [NOT_LOADED]}, "/api/v1/models/load": {}}
    ) as server:
        assert await query_window(server, requested=16_000) == ContextWindow(16_000, True)
    assert server.posted == [("/api/v1/models/load", {"model": "m", "context_length": 16_000})]


async def test_loaded_model_is_not_reloaded():
    async with make_server(models=LM_STUDIO, pages={"/api/v0/models": {"data": [LOADED]}}) as server:
        assert await query_window(server, requested=16_000) == ContextWindow(4096, True)
    assert server.posted == []


@pytest.mark.parametrize(
    ("models", "pages", "configured", "limit"),
    [
        (VLLM, {}, None, 40_960),
        (VLLM, {}, 8_000, 8_000),
        (VLLM, {}, 100_000, 40_960),
        (OLLAMA, {"/api/ps": RUNNING}, 32_000, 4096),
        (OLLAMA, {"/api/show": DETAILS_LARGE}, 32_000, 32_000),
        (OLLAMA, {"/api/show": DETAILS_LARGE}, None, 40_960),
        ([], {}, 9_000, 9_000),
        ([], {}, None, DEFAULT_WINDOW),
    ],
)
async def test_smallest_enforced_window_is_used(client, models, pages, configured, limit):
    """Some servers silently truncate prompts that are longer than their window."""
    async with make_server(models=models, pages=pages) as server:
        model = client(server, context_window=configured)
        assert model.context_limit == (configured or DEFAULT_WINDOW)
        assert await model.fetch_window() == limit == model.context_limit
        await model.aclose()


async def test_window_is_fetched_again_after_the_first_reply(client):
    async with make_server(text("a"), text("b"), models=OLLAMA, pages={"/api/show": DETAILS_LARGE}) as server:
        model = client(server)
        assert await model.fetch_window() == 40_960
        server._pages["/api/ps"] = RUNNING
        _ = [chunk async for chunk in model.stream(make_request())]
        await model._window_task
        assert model.context_limit == 4096
        _ = [chunk async for chunk in model.stream(make_request())]
        await model.aclose()
    assert json.loads(server.requests[1].body)["model"] == "m"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("gpt-4o-mini", 128_000),
        ("claude-sonnet-4", 200_000),
        ("Qwen/Qwen3-Coder-30B", 262_144),
        ("qwen3:8b", 40_960),
        ("anything", DEFAULT_WINDOW),
        ("", DEFAULT_WINDOW),
    ],
)
def test_windows_by_name(name, size):
    assert window_by_name(name) == size
