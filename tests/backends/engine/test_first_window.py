"""The first request of a process: a large one waits for the server's window, a small one for nothing."""

import asyncio
from functools import partial

import pytest
from engine_play import Model, Said, script

from ostler.journal.memory_journal import MemoryJournal
from ostler.models import context_windows, http_model
from ostler.models.client_factory import NetworkConfig, make_client
from ostler.models.dialects.dialect import apply_dialect
from ostler.models.fallback import FallbackModel, FallbackProfile
from ostler.testing.model_server import ScriptedModelServer, status, text

pytestmark = pytest.mark.req("EN-8", "MD-8")


def client(server):
    """As the program makes it: the window is asked for beside everything else."""
    made = make_client(api_kind="openai", base_url=server.base_url, model="m", network=NetworkConfig(environ={}))
    made.start_window_fetch()
    return FallbackModel(apply_dialect(made, "native"), [FallbackProfile("none", lambda: made)])


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A machine under load may be late with its answer; that is not what is looked at here."""
    monkeypatch.setattr(context_windows, "fetch_window", partial(context_windows.fetch_window, timeout=60.0))
    monkeypatch.setattr(http_model, "_WINDOW_WAIT_SECONDS", 60.0)


def served(window):
    return [{"id": "m", "max_model_len": window}]


async def test_a_long_session_that_is_taken_up_fits_the_window_of_its_server(harness):
    journal = MemoryJournal("session-1")
    async with ScriptedModelServer(*[text("noted")] * 3, models=served(100_000)) as server:
        await harness.open(client(server), journal=journal)
        for number in range(3):
            await harness.turn(f"{number} " + "some words about it " * 700)
        await harness.session.aclose()
    async with ScriptedModelServer(text("a summary"), text("done"), models=served(8_192)) as server:
        await harness.open(client(server), journal=journal)
        assert (await harness.turn("go on")).reason == "done"
        sizes = [len(request.body) for request in server.requests]
    assert max(sizes) < 8_192 * 3.6
    assert len(journal.records()) > 3


class Unsure(Model):
    """Its server never tells the window."""

    def __init__(self):
        super().__init__(script(Said("done")))
        self.waited_for = asyncio.Event()

    async def wait_for_window(self):
        self.waited_for.set()


@pytest.mark.parametrize(("size", "waits"), [(10, False), (40_000, True)])
async def test_only_a_large_request_waits(harness, size, waits):
    model = Unsure()
    await harness.open(model)
    await harness.turn("x" * size)
    assert model.waited_for.is_set() is waits


async def test_a_server_that_does_not_tell_is_not_waited_for_again(harness):
    async with ScriptedModelServer(text("one"), text("two"), models=["other"]) as server:
        await harness.open(client(server))
        assert (await harness.turn("x" * 20_000)).reason == "done"
        assert (await harness.turn("y")).reason == "done"


def handing(first, second):
    """Two as the program makes them: the second, and its window, are nobody's business before the first fails."""

    def made(server):
        client = make_client(api_kind="openai", base_url=server.base_url, model="m", network=NetworkConfig(environ={}))
        client.start_window_fetch()
        return client

    return FallbackModel(made(first), [FallbackProfile("small", lambda: made(second))])


QUOTA = status(429, {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}})


@pytest.mark.req("MD-5")
async def test_a_conversation_is_made_to_fit_the_one_that_goes_on(harness):
    """Nothing that its window does not hold is ever sent: some servers cut off silently what they cannot hold."""
    noted = [text("noted")] * 3
    async with (
        ScriptedModelServer(*noted, QUOTA, models=served(100_000)) as first,
        ScriptedModelServer(text("a summary"), text("done"), models=served(8_192)) as second,
    ):
        await harness.open(handing(first, second))
        for number in range(3):
            await harness.turn(f"{number} " + "some words about it " * 700)
        assert (await harness.turn("go on")).reason == "done"
        sizes = [len(request.body) for request in second.requests if request.body]
    assert len(sizes) == 2
    assert max(sizes) < 8_192 * 3.6


@pytest.mark.req("MD-5")
async def test_one_that_fits_is_handed_on_as_it_is(harness):
    async with (
        ScriptedModelServer(QUOTA, models=served(100_000)) as first,
        ScriptedModelServer(text("done"), models=served(8_192)) as second,
    ):
        await harness.open(handing(first, second))
        assert (await harness.turn("short")).reason == "done"
    assert "short" in second.requests[-1].body.decode()
