"""The embedded model's server process and client, with a fake inference library."""

import asyncio

import pytest
from tests.models.embedded.fake_runtime import install_fake, received_requests, started, step

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
    """Return a factory of a model with scripted replies, and its file."""

    def make(*replies, **options):
        weights = install_fake(tmp_path, *replies, **options)
        (library,) = tmp_path.glob("runtime-*")
        return EmbeddedModel("embedded/tiny", lambda: start_server(weights, str(library), lambda: 1)), weights

    return make


async def collect(model, request=REQUEST):
    return [chunk async for chunk in model.stream(request)]


async def test_reply_has_text_call_and_usage(embedded):
    model, weights = embedded(step("I look.", "read", path="a.py"), step("It is fine."))
    chunks = await collect(model)
    assert isinstance(chunks[0], NoData)
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "I look."
    assert [chunk for chunk in chunks if isinstance(chunk, CallChunk)] == [
        CallChunk("call_0", "read", '{"path": "a.py"}')
    ]
    assert Usage(100, 10, 0, 0.0) in chunks
    assert chunks[-1] == ReplyFinished("calls")
    assert (await collect(model))[-1] == ReplyFinished("stop")
    await model.aclose()
    assert (started(weights)["context"], model.context_limit) == (CONTEXT_WINDOW, CONTEXT_WINDOW)


async def test_requests_have_schema_and_token_limit(embedded):
    model, weights = embedded(step("a"), "a title")
    await collect(model)
    plain = await collect(model, ModelRequest("Name it.", REQUEST.history))
    await model.aclose()
    first, second = received_requests(weights)
    assert first["response_format"]["type"] == "json_schema"
    assert (first["temperature"], first["max_tokens"], "tools" in first) == (0.0, 1500, False)
    assert "response_format" not in second
    assert TextChunk("a title") in plain or "".join(c.text for c in plain if isinstance(c, TextChunk)) == "a title"


async def test_one_process_serves_all_requests_until_closed(embedded):
    model, weights = embedded(step("a"), step("b"))
    await collect(model)
    first = started(weights)
    assert not any(isinstance(chunk, NoData) for chunk in await collect(model))
    assert started(weights) == first
    server = model._server
    await model.aclose()
    assert not server.is_alive
    await model.aclose()


async def test_dead_process_is_restarted(embedded):
    model, _ = embedded(step("a"))
    await collect(model)
    await model._server.stop()
    assert isinstance((await collect(model))[0], NoData)
    await model.aclose()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error": "the file is truncated"}, "tiny.gguf did not start: RuntimeError: the file is truncated; "),
        ({"error": "Failed to init server, please"}, "did not start: the file is damaged or its format"),
        ({"die": "now"}, "tiny.gguf did not start: last line; "),
    ],
)
async def test_load_failure_has_readable_message(embedded, options, message):
    model, _ = embedded(**options)
    with pytest.raises(BackendError) as caught:
        await collect(model)
    assert message in str(caught.value)
    await model.aclose()


async def test_missing_library_has_readable_message(tmp_path):
    with pytest.raises(BackendError, match="did not start: ModuleNotFoundError: No module named 'xllamacpp'"):
        await start_server(tmp_path / "a.gguf", str(tmp_path), lambda: 1)


@pytest.mark.parametrize(
    ("cores", "load", "threads"),
    [(1, 0.0, 1), (2, 0.0, 1), (2, 9.0, 1), (8, 0.0, 7), (8, 2.6, 5), (8, 7.9, 1), (64, 100.0, 1)],
)
def test_threads_use_idle_cores_but_never_all(cores, load, threads):
    assert choose_threads(cores, load) == threads


async def test_notices_are_shown_while_loading(tmp_path):
    weights = install_fake(tmp_path, step("Here."))
    (library,) = tmp_path.glob("runtime-*")
    third_notice = asyncio.Event()

    async def start_late():
        await third_notice.wait()
        return await start_server(weights, str(library), lambda: 1)

    model, notices = EmbeddedModel("embedded/tiny", start_late, notice_interval=0.001), []
    async for chunk in model.stream(REQUEST):
        if isinstance(chunk, NoData):
            notices.append(chunk)
            if len(notices) == 3:
                third_notice.set()
    await model.aclose()
    assert notices[0] == NoData(0.0, "loading the embedded model")
    assert notices[2].reason.startswith("loading the embedded model for ")


async def test_closing_while_loading_cancels_the_start():
    start_cancelled = asyncio.Event()

    async def start_never():
        try:
            await asyncio.Event().wait()
        finally:
            start_cancelled.set()

    model = EmbeddedModel("embedded/tiny", start_never, notice_interval=0.001)
    stream = model.stream(REQUEST)
    await anext(stream)
    await anext(stream)
    await stream.aclose()
    assert start_cancelled.is_set()
    await model.aclose()
