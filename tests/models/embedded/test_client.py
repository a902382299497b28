"""The embedded model's process as Ostler holds it, and the client that speaks to it; a stand-in does the thinking."""

import asyncio

import pytest
from tests.models.embedded.fake_runtime import asked, install_fake, started, step

from ostler.core.errors import BackendError
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolSpec
from ostler.models.embedded.client import EmbeddedModel
from ostler.models.embedded.server import CONTEXT_WINDOW, start_server
from ostler.models.embedded.step_protocol import embedded_prompt, embedded_tools
from ostler.models.embedded.threads import choose_threads
from ostler.models.model_types import CallChunk, ModelRequest, NoData, ReplyFinished, TextChunk, Usage, UserMessage

pytestmark = pytest.mark.req("MD-10")

TOOLS = tuple(embedded_tools([ToolSpec(name, "other", "…", {}) for name in ("bash", "read", "edit")]))
REQUEST = ModelRequest(embedded_prompt(), (UserMessage((TextContent("go"),)),), TOOLS)


@pytest.fixture
def embedded(tmp_path):
    """A model that plays its replies, and its file."""

    def make(*replies, **told):
        weights = install_fake(tmp_path, *replies, **told)
        (library,) = tmp_path.glob("runtime-*")
        return EmbeddedModel("embedded/tiny", lambda: start_server(weights, str(library), lambda: 1)), weights

    return make


async def heard(model, request=REQUEST):
    return [chunk async for chunk in model.stream(request)]


async def test_a_reply_is_words_a_call_and_what_it_cost(embedded):
    model, weights = embedded(step("I look.", "read", path="a.py"), step("It is fine."))
    chunks = await heard(model)
    assert isinstance(chunks[0], NoData)
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "I look."
    assert [chunk for chunk in chunks if isinstance(chunk, CallChunk)] == [
        CallChunk("call_0", "read", '{"path": "a.py"}')
    ]
    assert Usage(100, 10, 0, 0.0) in chunks
    assert chunks[-1] == ReplyFinished("calls")
    assert (await heard(model))[-1] == ReplyFinished("stop")
    await model.aclose()
    assert (started(weights)["context"], model.context_limit) == (CONTEXT_WINDOW, CONTEXT_WINDOW)


async def test_requests_are_held_to_a_schema_and_bounded(embedded):
    model, weights = embedded(step("a"), "a title")
    await heard(model)
    plain = await heard(model, ModelRequest("Name it.", REQUEST.history))
    await model.aclose()
    first, second = asked(weights)
    assert first["response_format"]["type"] == "json_schema"
    assert (first["temperature"], first["max_tokens"], "tools" in first) == (0.0, 1500, False)
    assert "response_format" not in second
    assert TextChunk("a title") in plain or "".join(c.text for c in plain if isinstance(c, TextChunk)) == "a title"


async def test_one_process_serves_all_requests_and_ends_with_the_session(embedded):
    model, weights = embedded(step("a"), step("b"))
    await heard(model)
    first = started(weights)
    assert not any(isinstance(chunk, NoData) for chunk in await heard(model))
    assert started(weights) == first
    serving = model._server
    await model.aclose()
    assert not serving.is_alive
    await model.aclose()


async def test_a_process_that_died_is_started_anew(embedded):
    model, _ = embedded(step("a"))
    await heard(model)
    await model._server.stop()
    assert isinstance((await heard(model))[0], NoData)
    await model.aclose()


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"error": "the file is torn"}, "tiny.gguf did not start: RuntimeError: the file is torn; "),
        ({"error": "Failed to init server, please"}, "did not start: the file is damaged, or of a kind"),
        ({"die": "now"}, "tiny.gguf did not start: last words; "),
    ],
)
async def test_a_model_that_does_not_load_is_told_in_a_sentence(embedded, told, sentence):
    model, _ = embedded(**told)
    with pytest.raises(BackendError) as caught:
        await heard(model)
    assert sentence in str(caught.value)
    await model.aclose()


async def test_a_missing_library_is_told_in_a_sentence(tmp_path):
    with pytest.raises(BackendError, match="did not start: ModuleNotFoundError: No module named 'xllamacpp'"):
        await start_server(tmp_path / "a.gguf", str(tmp_path), lambda: 1)


@pytest.mark.parametrize(
    ("cores", "load", "threads"),
    [(1, 0.0, 1), (2, 0.0, 1), (2, 9.0, 1), (8, 0.0, 7), (8, 2.6, 5), (8, 7.9, 1), (64, 100.0, 1)],
)
def test_threads_are_what_the_load_leaves_and_never_all(cores, load, threads):
    assert choose_threads(cores, load) == threads


async def test_loading_is_told_as_long_as_it_takes(tmp_path):
    """Its first words too: what comes of a reply is told once it is there."""
    weights = install_fake(tmp_path, step("Here."))
    (library,) = tmp_path.glob("runtime-*")
    told = asyncio.Event()

    async def late():
        await told.wait()
        return await start_server(weights, str(library), lambda: 1)

    model, silences = EmbeddedModel("embedded/tiny", late, notice_interval=0.001), []
    async for chunk in model.stream(REQUEST):
        if isinstance(chunk, NoData):
            silences.append(chunk)
            if len(silences) == 3:
                told.set()
    await model.aclose()
    assert silences[0] == NoData(0.0, "the embedded model is being loaded")
    assert silences[2].reason.startswith("the embedded model is being loaded since ")


async def test_leaving_while_it_loads_leaves_nothing_behind():
    left = asyncio.Event()

    async def never():
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    model = EmbeddedModel("embedded/tiny", never, notice_interval=0.001)
    stream = model.stream(REQUEST)
    await anext(stream)
    await anext(stream)
    await stream.aclose()
    assert left.is_set()
    await model.aclose()
