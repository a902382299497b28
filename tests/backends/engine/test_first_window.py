"""The first request of a process: a large one waits for the server's window, a small one for nothing."""

import asyncio
from functools import partial

import pytest
from engine_play import Model, Said, script

from ostler.journal.memory import MemoryJournal
from ostler.models import http_model, windows
from ostler.models.dialects.wrap import with_dialect
from ostler.models.fallback import Standby, WithFallback
from ostler.models.make import Network, make_client
from ostler.testing.model_server import ScriptedModelServer, status, text

pytestmark = pytest.mark.req("EN-8", "MD-8")


def client(server):
    """As the program makes it: the window is asked for beside everything else."""
    made = make_client(api_kind="openai", base_url=server.base_url, model="m", network=Network(environ={}))
    made.learn_soon()
    return WithFallback(with_dialect(made, "native"), [Standby("none", lambda: made)])


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A machine under load may be late with its answer; that is not what is looked at here."""
    monkeypatch.setattr(windows, "ask_window", partial(windows.ask_window, timeout=60.0))
    monkeypatch.setattr(http_model, "_LEARNING_SECONDS", 60.0)


def served(window):
    return [{"id": "m", "max_model_len": window}]


async def test_a_long_session_that_is_taken_up_fits_the_window_of_its_server(stage):
    journal = MemoryJournal("session-1")
    async with ScriptedModelServer(*[text("noted")] * 3, models=served(100_000)) as server:
        await stage.open(client(server), journal=journal)
        for number in range(3):
            await stage.turn(f"{number} " + "some words about it " * 700)
        await stage.session.aclose()
    async with ScriptedModelServer(text("a summary"), text("done"), models=served(8_192)) as server:
        await stage.open(client(server), journal=journal)
        assert (await stage.turn("go on")).reason == "done"
        sizes = [len(request.body) for request in server.requests]
    assert max(sizes) < 8_192 * 3.6
    assert len(journal.past()) > 3


class Unsure(Model):
    """Its server never tells the window."""

    def __init__(self):
        super().__init__(script(Said("done")))
        self.waited_for = asyncio.Event()

    async def learned(self):
        self.waited_for.set()


@pytest.mark.parametrize(("size", "waits"), [(10, False), (40_000, True)])
async def test_only_a_large_request_waits(stage, size, waits):
    model = Unsure()
    await stage.open(model)
    await stage.turn("x" * size)
    assert model.waited_for.is_set() is waits


async def test_a_server_that_does_not_tell_is_not_waited_for_again(stage):
    async with ScriptedModelServer(text("one"), text("two"), models=["other"]) as server:
        await stage.open(client(server))
        assert (await stage.turn("x" * 20_000)).reason == "done"
        assert (await stage.turn("y")).reason == "done"


def handing(first, second):
    """Two as the program makes them: the second, and its window, are nobody's business before the first fails."""

    def made(server):
        client = make_client(api_kind="openai", base_url=server.base_url, model="m", network=Network(environ={}))
        client.learn_soon()
        return client

    return WithFallback(made(first), [Standby("small", lambda: made(second))])


QUOTA = status(429, {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}})


@pytest.mark.req("MD-5")
async def test_a_conversation_is_made_to_fit_the_one_that_goes_on(stage):
    """Nothing that its window does not hold is ever sent: some servers cut off silently what they cannot hold."""
    noted = [text("noted")] * 3
    async with (
        ScriptedModelServer(*noted, QUOTA, models=served(100_000)) as first,
        ScriptedModelServer(text("a summary"), text("done"), models=served(8_192)) as second,
    ):
        await stage.open(handing(first, second))
        for number in range(3):
            await stage.turn(f"{number} " + "some words about it " * 700)
        assert (await stage.turn("go on")).reason == "done"
        sizes = [len(request.body) for request in second.requests if request.body]
    assert len(sizes) == 2
    assert max(sizes) < 8_192 * 3.6


@pytest.mark.req("MD-5")
async def test_one_that_fits_is_handed_on_as_it_is(stage):
    async with (
        ScriptedModelServer(QUOTA, models=served(100_000)) as first,
        ScriptedModelServer(text("done"), models=served(8_192)) as second,
    ):
        await stage.open(handing(first, second))
        assert (await stage.turn("short")).reason == "done"
    assert "short" in second.requests[-1].body.decode()
