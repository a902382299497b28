"""The first request of a process: a large one waits until the server's window is known, a small one does not."""

import asyncio
from functools import partial

import pytest
from engine_harness import Model, Reply, script

from ostler.journal.memory_journal import MemoryJournal
from ostler.models import context_windows, http_model
from ostler.models.client_factory import NetworkConfig, make_client
from ostler.models.dialects.dialect import apply_dialect
from ostler.models.fallback import FallbackModel, FallbackProfile
from ostler.testing.model_server import ScriptedModelServer, status, text

pytestmark = pytest.mark.req("EN-8", "MD-8")


def client(server):
    """Return a client as the program makes it, fetching the window in the background."""
    http_client = make_client(api_kind="openai", base_url=server.base_url, model="m", network=NetworkConfig(environ={}))
    http_client.start_window_fetch()
    return FallbackModel(apply_dialect(http_client, "native"), [FallbackProfile("none", lambda: http_client)])


@pytest.fixture(autouse=True)
def long_timeouts(monkeypatch):
    """Use long timeouts, because a loaded machine may answer late."""
    monkeypatch.setattr(context_windows, "fetch_window", partial(context_windows.fetch_window, timeout=60.0))
    monkeypatch.setattr(http_model, "_WINDOW_WAIT_SECONDS", 60.0)


def model_list(window):
    return [{"id": "m", "max_model_len": window}]


async def test_resumed_session_fits_the_servers_window(harness):
    journal = MemoryJournal("session-1")
    async with ScriptedModelServer(*[text("noted")] * 3, models=model_list(100_000)) as server:
        await harness.open(client(server), journal=journal)
        for number in range(3):
            await harness.turn(f"{number} " + "some words about it " * 700)
        await harness.session.aclose()
    async with ScriptedModelServer(text("a summary"), text("done"), models=model_list(8_192)) as server:
        await harness.open(client(server), journal=journal)
        assert (await harness.turn("go on")).reason == "done"
        sizes = [len(request.body) for request in server.requests]
    assert max(sizes) < 8_192 * 3.6
    assert len(journal.records()) > 3


class WindowlessModel(Model):
    """Its server never reports the window."""

    def __init__(self):
        super().__init__(script(Reply("done")))
        self.waited_for = asyncio.Event()
        self.waited_before_request = False

    async def wait_for_window(self):
        self.waited_for.set()

    def stream(self, request):
        self.waited_before_request = self.waited_for.is_set()
        return super().stream(request)


@pytest.mark.parametrize(("size", "waits"), [(10, False), (40_000, True)])
async def test_only_a_large_request_waits(harness, size, waits):
    model = WindowlessModel()
    await harness.open(model)
    await harness.turn("x" * size)
    assert model.waited_before_request is waits


async def test_server_without_window_is_waited_for_once(harness):
    async with ScriptedModelServer(text("one"), text("two"), models=["other"]) as server:
        await harness.open(client(server))
        assert (await harness.turn("x" * 20_000)).reason == "done"
        assert (await harness.turn("y")).reason == "done"


def fallback_client(first, second):
    """Return a client whose fallback is created, and its window fetched, only after the first server fails."""

    def make_http_client(server):
        client = make_client(api_kind="openai", base_url=server.base_url, model="m", network=NetworkConfig(environ={}))
        client.start_window_fetch()
        return client

    return FallbackModel(make_http_client(first), [FallbackProfile("small", lambda: make_http_client(second))])


QUOTA = status(429, {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}})


@pytest.mark.req("MD-5")
async def test_conversation_is_compacted_for_the_fallback_model(harness):
    """Nothing larger than the window is sent: some servers truncate silently."""
    noted = [text("noted")] * 3
    async with (
        ScriptedModelServer(*noted, QUOTA, models=model_list(100_000)) as first,
        ScriptedModelServer(text("a summary"), text("done"), models=model_list(8_192)) as second,
    ):
        await harness.open(fallback_client(first, second))
        for number in range(3):
            await harness.turn(f"{number} " + "some words about it " * 700)
        assert (await harness.turn("go on")).reason == "done"
        sizes = [len(request.body) for request in second.requests if request.body]
    assert len(sizes) == 2
    assert max(sizes) < 8_192 * 3.6


@pytest.mark.req("MD-5")
async def test_fitting_conversation_is_passed_to_the_fallback_unchanged(harness):
    async with (
        ScriptedModelServer(QUOTA, models=model_list(100_000)) as first,
        ScriptedModelServer(text("done"), models=model_list(8_192)) as second,
    ):
        await harness.open(fallback_client(first, second))
        assert (await harness.turn("short")).reason == "done"
    assert "short" in second.requests[-1].body.decode()
