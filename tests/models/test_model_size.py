"""The size of a model decides how it edits: from its name, its server or its window."""

import pytest
from model_helpers import collect, make_request

from ostler.models.model_choice import make_model
from ostler.models.model_size import is_small, parameters_by_name
from ostler.settings.model_profiles import Profile
from ostler.testing.model_server import ScriptedModelServer, text

pytestmark = pytest.mark.req("MD-10")

LLAMA_CPP = {"id": "m", "owned_by": "llamacpp", "meta": {"n_params": 1_543_714_304}}
OLLAMA = {"id": "m", "owned_by": "library"}
OLLAMA_DETAILS = {"details": {"parameter_size": "3.2B"}, "model_info": {"llama.context_length": 131_072}}
OLLAMA_LARGE = {"details": {"parameter_size": "30.5B"}, "model_info": {"qwen3.context_length": 4096}}
OLLAMA_RUNNING = {"models": [{"name": "m", "context_length": 4096, "details": {"parameter_size": "1.5B"}}]}
LM_STUDIO = {"id": "m", "owned_by": "organization_owner"}
LM_STUDIO_MODEL = {"id": "m", "state": "loaded", "loaded_context_length": 32_768, "params_string": "1.2B"}


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen2.5-coder:1.5b", 1.5),
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", 0.5),
        ("smollm2-360m", 0.36),
        ("llama-3.3-70b-versatile", 70),
        ("mixtral-8x7b", 56),
        ("qwen3-30b-a3b", 30),
        ("gpt-4o", 0),
        ("claude-3b5", 0),
        ("llama3.2", 0),
        ("/models/tiny-1b.gguf", 1),
    ],
)
def test_parameters_are_read_from_the_name(name, billions):
    assert parameters_by_name(name) == int(billions * 1e9)


@pytest.mark.parametrize(
    ("parameters", "window", "small"),
    [(3 * 10**9, 131_072, True), (7 * 10**9, 4096, False), (0, 8192, True), (0, 32_768, False), (0, 0, False)],
)
def test_few_parameters_or_a_small_window_are_small(parameters, window, small):
    assert is_small(parameters, window) is small


@pytest.mark.parametrize(
    ("entry", "pages", "small"),
    [
        (LLAMA_CPP, {"/props": {"default_generation_settings": {"n_ctx": 32_768}}}, True),
        (LLAMA_CPP, {}, True),
        (OLLAMA, {"/api/ps": {"models": []}, "/api/show": OLLAMA_DETAILS}, True),
        (OLLAMA, {"/api/ps": {"models": []}, "/api/show": OLLAMA_LARGE}, False),
        (OLLAMA, {"/api/ps": OLLAMA_RUNNING}, True),
        (LM_STUDIO, {"/api/v0/models": {"data": [LM_STUDIO_MODEL]}}, True),
        ({"id": "m", "owned_by": "vllm", "max_model_len": 4096}, {}, True),
        ({"id": "m", "owned_by": "vllm", "max_model_len": 40_960}, {}, False),
        ({"id": "m", "meta": "x", "details": [1]}, {}, False),
    ],
)
async def test_discovered_server_tells_the_size_before_the_first_request(entry, pages, small):
    async with ScriptedModelServer(text("a"), models=[entry], pages=pages) as server:
        model = make_model(Profile(name="p", model="m", base_url=server.base_url), discovered=True)
        await model.learn_size()
        assert model.edits_in_text is small
        await collect(model)


async def test_configured_profile_does_not_wait_but_advises_later():
    async with ScriptedModelServer(text("a"), models=[LLAMA_CPP]) as server:
        model = make_model(Profile(name="p", model="m", base_url=server.base_url))
        await model.learn_size()
        assert (server.requests, model.edits_in_text) == ([], False)
        assert [chunk async for chunk in model.stream(make_request())]
        await model.fetch_window()
        assert (model.edits_in_text, 'with "editing": "text"' in model.size_advice) == (False, True)
        await model.aclose()


async def test_small_model_gets_limits_and_no_chance_unless_the_profile_sets_them():
    for values, expected in (({}, (0.0, 2000)), ({"temperature": 0.3, "max_output_tokens": 50}, (0.3, 50))):
        async with ScriptedModelServer(text("a"), models=["m-1b"]) as server:
            await collect(make_model(Profile(name="p", model="m-1b", base_url=server.base_url, **values)))
        sent = next(request.json for request in server.requests if request.method == "POST")
        assert (sent["temperature"], sent["max_tokens"]) == expected
