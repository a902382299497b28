"""The embedded model's server process and client, with a fake inference library."""

import asyncio

import pytest
from tests.models.embedded.fake_runtime import install_fake, received_requests, started, state_requests

from ostler.core.errors import BackendError
from ostler.core.prompt import TextContent
from ostler.models.embedded.client import EmbeddedModel
from ostler.models.embedded.prefix_cache import PrefixCache
from ostler.models.embedded.server import CONTEXT_WINDOW, start_server
from ostler.models.embedded.threads import choose_threads, free_threads, idle_cores
from ostler.models.model_types import ModelRequest, NoData, ReplyFinished, TextChunk, Usage, UserMessage

pytestmark = pytest.mark.req("MD-10")

REQUEST = ModelRequest("You answer.", (UserMessage((TextContent("go"),)),))


async def one_thread():
    return 1


@pytest.fixture
def embedded(tmp_path):
    """Return a factory of a model with scripted replies, and its file."""

    def make(*replies, **options):
        weights = install_fake(tmp_path, *replies, **options)
        (library,) = tmp_path.glob("runtime-*")
        return EmbeddedModel("embedded/tiny", lambda: start_server(weights, str(library), one_thread)), weights

    return make


async def collect(model, request=REQUEST):
    return [chunk async for chunk in model.stream(request)]


async def test_reply_has_progress_text_and_usage(embedded):
    model, weights = embedded("It is fine.")
    chunks = await collect(model)
    assert chunks[0] == NoData(0.0, "loading the embedded model")
    assert NoData(4.0, "reading the prompt: 128 of 300 tokens, 4 s") in chunks
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "It is fine."
    assert Usage(100, 10, 0, 0.0) in chunks
    assert chunks[-1] == ReplyFinished("stop")
    await model.aclose()
    assert (started(weights)["context"], model.context_limit) == (CONTEXT_WINDOW, CONTEXT_WINDOW)


async def test_requests_have_token_limit_and_ask_for_progress(embedded):
    model, weights = embedded("a")
    await collect(model)
    await model.aclose()
    (request,) = received_requests(weights)
    assert (request["temperature"], request["max_tokens"], request["return_progress"]) == (0.0, 1500, True)


async def test_state_after_the_system_prompt_is_saved_once_and_restored(tmp_path):
    weights = install_fake(tmp_path, "a", "b")
    (library,) = tmp_path.glob("runtime-*")
    states = tmp_path / "states"
    states.mkdir()
    for _ in range(2):
        cache = PrefixCache(states, weights)
        model = EmbeddedModel(
            "embedded/tiny", lambda: start_server(weights, str(library), one_thread, states=states), prefix_cache=cache
        )
        await collect(model)
        await model.aclose()
    requests = [line.partition(" ")[0] for line in state_requests(weights)]
    assert requests == ["/v1/chat/completions", "/slots/0?action=save", "/slots/0?action=restore"]
    assert '"go"' not in "".join(state_requests(weights))


async def test_one_process_serves_all_requests_until_closed(embedded):
    model, weights = embedded("a", "b")
    await collect(model)
    first = started(weights)
    assert not any(isinstance(chunk, NoData) and "loading" in chunk.reason for chunk in await collect(model))
    assert started(weights) == first
    server = model._server
    await model.aclose()
    assert not server.is_alive
    await model.aclose()


async def test_dead_process_is_restarted(embedded):
    model, _ = embedded("a")
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
        await start_server(tmp_path / "a.gguf", str(tmp_path), one_thread)


@pytest.mark.parametrize(
    ("cores", "idle", "threads"), [(1, 0.0, 1), (2, 2.0, 2), (2, 0.1, 1), (8, 7.6, 8), (8, 2.6, 3), (4, 9.0, 4)]
)
def test_threads_are_the_idle_cores(cores, idle, threads):
    assert choose_threads(cores, idle) == threads


def test_idle_cores_are_measured_between_two_readings():
    before = {"cpu0": (100, 1000), "cpu1": (500, 1000)}
    assert idle_cores(before, {"cpu0": (110, 1010), "cpu1": (500, 1010)}) == 1.0


async def test_this_machine_has_a_free_thread():
    assert await free_threads() >= 1


async def test_notices_are_shown_while_loading(tmp_path):
    weights = install_fake(tmp_path, "Here.")
    (library,) = tmp_path.glob("runtime-*")
    third_notice = asyncio.Event()

    async def start_late():
        await third_notice.wait()
        return await start_server(weights, str(library), one_thread)

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
