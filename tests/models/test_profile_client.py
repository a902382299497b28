"""What a profile says of a model reaches the wire: sampling, price, proxy, authority, patience, dialect, window."""

import asyncio
import json
import logging
import ssl

import pytest
from model_talk import ask, collect, only, words

from ostler.app.model_choice import choose_model, make_http_client, make_model
from ostler.core.errors import BackendError, UsageError
from ostler.models.http_model import HttpModel
from ostler.models.model_settings import Sampling, TokenPrice
from ostler.models.model_types import CallChunk, RetryScheduled, Usage
from ostler.settings.load import load
from ostler.settings.model_profiles import Profile
from ostler.settings.schema_models import PriceConfig
from ostler.settings.secret import Secret
from ostler.testing.model_server import ScriptedModelServer, stall, status, text


def profile(server=None, **values):
    given = {"name": "p", "model": "m"} | ({"base_url": server.base_url} if server else {})
    return Profile(**(given | values))


async def play(reply, **values):
    """The chunks of one reply to a profile's client, and the request as it came."""
    async with ScriptedModelServer(reply) as server:
        chunks = await collect(make_http_client(profile(server, **values)))
    return chunks, server.requests[0].json


@pytest.mark.req("MD-2")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_sampling_reaches_the_request(kind):
    _, sent = await play(text("a"), api_kind=kind, temperature=0.25, top_p=0.5, max_output_tokens=77)
    assert (sent["temperature"], sent["top_p"], sent["max_tokens"]) == (0.25, 0.5, 77)
    _, sent = await play(text("a"), api_kind=kind)
    assert not {"temperature", "top_p"} & sent.keys()


def test_a_request_keeps_what_it_says_itself():
    filled = Sampling(77, 0.25, None).apply_defaults(ask(temperature=0.0))
    assert (filled.max_tokens, filled.temperature, filled.top_p) == (77, 0.0, None)
    request = ask()
    assert Sampling().apply_defaults(request) is request


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_the_cost_is_known_where_the_price_is(kind):
    reply = text("a").with_usage(3_000_000, 1_000_000, 1_000_000)
    for price, cost in ((PriceConfig(2, 8, 0.5), 4 + 8 + 0.5), (PriceConfig(2, 8), 6 + 8), (None, None)):
        chunks, _ = await play(reply, api_kind=kind, price=price)
        assert only(chunks, Usage) == [Usage(3_000_000, 1_000_000, 1_000_000, cost)]


def test_more_cached_than_sent_costs_no_less_than_nothing():
    assert TokenPrice(2, 8, 0).add_cost(Usage(10, 0, 1000)).cost == 0


async def test_a_profiles_proxy_is_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with ScriptedModelServer(text("through the proxy")) as server:
        proxy = Secret(f"http://name:word@127.0.0.1:{server.port}")
        chunks = await collect(make_http_client(profile(base_url="http://model.example/v1", proxy=proxy)))
    assert words(chunks) == "through the proxy"
    assert server.requests[0].path == "http://model.example/v1/chat/completions"
    assert server.requests[0].headers["proxy-authorization"].startswith("Basic ")


def test_a_proxy_that_cannot_be_used_is_told_with_its_setting():
    with pytest.raises(BackendError, match="the profile's `proxy`") as caught:
        make_http_client(profile(base_url="http://model.example/v1", proxy=Secret("socks5://user:word@h:1")))
    assert "word" not in str(caught.value)


async def test_a_profiles_authority_is_trusted(certificates):
    async with ScriptedModelServer(text("trusted"), tls=certificates.server_context()) as server:
        chunks = await collect(make_http_client(profile(server, ca=certificates.path("ca.pem"))))
        assert words(chunks) == "trusted"
        with pytest.raises(BackendError, match="the profile's `ca`"):
            await collect(make_http_client(profile(server)))
        with pytest.raises(BackendError, match=r"none\.pem cannot be read"):
            await collect(make_http_client(profile(server, ca="~/none.pem")))


async def test_a_profiles_own_certificate_is_shown_to_a_server_that_asks(certificates):
    who = {"ca": certificates.path("ca.pem")}
    mine = {"client_cert": certificates.path("client.pem"), "client_key": certificates.path("client.key")}
    async with ScriptedModelServer(text("known"), tls=certificates.server_context(wants_client=True)) as server:
        assert words(await collect(make_http_client(profile(server, **who, **mine)))) == "known"


@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_server_that_wants_to_know_us_says_so_in_its_own_way_and_the_setting_is_named(certificates, most):
    """Its reason may be overtaken by the end of the connection; both lead to the setting."""
    context = certificates.server_context(wants_client=True)
    context.maximum_version = most
    who, alien = {"ca": certificates.path("ca.pem")}, certificates.alien()
    for own, told in (({}, "asks? for a client certificate"), (alien, "refuse.* client certificate.*alien.pem")):
        async with ScriptedModelServer(tls=context) as server:
            model = make_http_client(profile(server, **who, **own))
            with pytest.raises(BackendError, match=told) as caught:
                await model._config.http.fetch("GET", "/v1/models", timeout=60, limit=1000)
            await model.aclose()
        assert "`clientCert`" in caught.value.fault.hint


async def test_a_web_server_that_asks_for_a_certificate_in_a_page_is_understood():
    page = "<html><head><title>400 No required SSL certificate was sent</title></head></html>"
    async with ScriptedModelServer(status(400, page)) as server:
        with pytest.raises(BackendError, match="asks for a client certificate") as caught:
            await collect(make_http_client(profile(server)))
    assert "`clientCert`" in caught.value.fault.hint


@pytest.mark.req("MD-5")
async def test_a_profiles_timeout_is_how_long_a_silence_may_be():
    async with ScriptedModelServer(stall()) as server:
        model = make_http_client(profile(server, timeout=0.1))
        stream = model.stream(ask())
        waiting = await anext(stream)
        assert isinstance(waiting, RetryScheduled)
        assert "has sent nothing" in waiting.reason
        await stream.aclose()
        await model.aclose()


@pytest.mark.req("MD-8")
async def test_the_window_is_learned_beside_the_first_request():
    async with ScriptedModelServer(text("a"), models=[{"id": "m", "max_model_len": 8192}]) as server:
        model = make_model(profile(server))
        assert model.context_limit == 32_768
        async with asyncio.timeout(5):
            chunks = [chunk async for chunk in model.stream(ask())]
            while model.context_limit != 8192:
                await asyncio.sleep(0)
        assert words(chunks) == "a"
        await model.aclose()


async def test_a_window_that_nobody_tells_delays_nothing_and_leaves_nothing_behind():
    asked, left = asyncio.Event(), asyncio.Event()

    async def never(reader, writer):
        asked.set()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        left.set()

    async with await asyncio.start_server(never, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        model = make_model(profile(base_url=f"http://127.0.0.1:{port}/v1"))
        await asked.wait()
        before = asyncio.all_tasks()
        await model.aclose()
        assert len(asyncio.all_tasks()) < len(before)
        await left.wait()


async def test_a_window_that_is_set_is_not_asked_for_far_away():
    async with ScriptedModelServer() as server:
        model = make_model(profile(base_url=f"https://127.0.0.1:{server.port}/v1", context=1000))
        assert model.context_limit == 1000
        await asyncio.sleep(0)
        await model.aclose()
    assert server.connections == 0


async def test_a_key_that_http_forbids_does_not_break_the_asking():
    model = make_model(profile(base_url="http://127.0.0.1:9/v1", key=Secret("ключ")))
    await asyncio.sleep(0)
    await model.aclose()


@pytest.mark.req("MD-6")
@pytest.mark.parametrize(("dialect", "offered"), [("native", True), ("text", False), ("xnl", False)])
async def test_the_dialect_of_the_profile_is_spoken(dialect, offered):
    said = '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>'
    async with ScriptedModelServer(text(said)) as server:
        chunks = await collect(make_model(profile(server, dialect=dialect, context=1000)))
    assert ("tools" in server.requests[0].json) == offered
    assert [call.tool for call in only(chunks, CallChunk)] == ["read_file"]


@pytest.mark.req("MD-6")
async def test_the_flag_goes_before_the_profile(tmp_path):
    async with ScriptedModelServer(text("a")) as server:
        entry = {"name": "p", "model": "m", "baseUrl": server.base_url, "dialect": "text", "context": 1000}
        config = {"models": {"profiles": [entry]}}
        (tmp_path / ".ostler").mkdir()
        (tmp_path / ".ostler" / "config.json").write_text(json.dumps(config))
        env = {"HOME": str(tmp_path)}
        settings = load(tmp_path, env)
        choice = await choose_model(settings, {"dialect": "xnl"}, env)
        await collect(choice.make(""))
    assert "# The notation XNL" in server.requests[0].json["messages"][0]["content"]


@pytest.mark.req("MD-1")
async def test_the_log_names_provider_and_kind(caplog):
    caplog.set_level(logging.INFO, "ostler.models")
    await play(text("a"), provider="acme", api_kind="anthropic")
    assert "provider acme, apiKind anthropic" in caplog.text


@pytest.mark.req("MD-10", "MD-7")
async def test_the_embedded_model_does_not_take_over_a_session(tmp_path):
    async with ScriptedModelServer() as server:
        choice = await choose_model(
            load(tmp_path, {"HOME": str(tmp_path)}), {"base_url": server.base_url, "model": "m"}, {}
        )
        for name in ("embedded", "embedded/tiny"):
            with pytest.raises(UsageError, match=f"start a new session: ostler --model {name}"):
                choice.make(name)


def test_the_bare_client_is_one_of_ours():
    assert isinstance(make_http_client(profile(base_url="http://127.0.0.1:9/v1")), HttpModel)


@pytest.mark.req("MD-3")
async def test_a_certificate_that_cannot_be_used_is_told_by_its_path_alone(tmp_path):
    (tmp_path / "me.pem").write_text("-----BEGIN PRIVATE KEY-----\nplanted-0123456789\n-----END PRIVATE KEY-----\n")
    async with ScriptedModelServer() as server:
        url = server.base_url.replace("http:", "https:")
        for given in ({"client_cert": str(tmp_path / "me.pem")}, {"ca": str(tmp_path / "me.pem")}):
            with pytest.raises(BackendError, match=r"me\.pem is not in PEM form") as caught:
                await collect(make_http_client(profile(base_url=url, **given)))
            assert "planted" not in str(caught.value)


@pytest.mark.req("MD-3")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_what_a_profile_sends_beside_the_key_is_told_no_more_than_it(kind):
    headers = {"X-Zone": Secret("zone-0123456789"), "X-Team": Secret("tools")}
    echo = status(401, {"error": {"message": "tools: zone-0123456789 and a b%c and a%20b%25c and plain are no good"}})
    async with ScriptedModelServer(echo) as server:
        url = f"{server.base_url}?sig=a%20b%25c&v=1"
        with pytest.raises(BackendError) as caught:
            await collect(make_http_client(profile(base_url=url, api_kind=kind, headers=headers)))
    assert "the key was refused" in str(caught.value)
    assert not {"zone-0123456789", "a b%c", "a%20b%25c"} & set(str(caught.value).split(" and "))
    async with ScriptedModelServer(status(400, {"error": {"message": "zone-0123456789, a b%c, a%20b%25c"}})) as server:
        url = f"{server.base_url}?sig=a%20b%25c&v=1"
        with pytest.raises(BackendError, match=r"…, …, …"):
            await collect(make_http_client(profile(base_url=url, api_kind=kind, headers=headers)))
    async with ScriptedModelServer(status(401)) as server:
        with pytest.raises(BackendError, match="wants a key"):
            await collect(make_http_client(profile(server, api_kind=kind, headers={"X-Team": Secret("tools-of-ours")})))


@pytest.mark.req("MD-3")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_headers_that_are_keys_are_told_no_more_than_the_key(kind):
    headers = {
        "X-Api-Token": Secret("corp-0123456789"),
        "Authorization": Secret("Basic abcdef012345"),
        "X-Team": Secret("tools"),
    }
    echo = status(400, {"error": {"message": "tools: corp-0123456789, abcdef012345 and sk-own-0123 are no good"}})
    async with ScriptedModelServer(echo) as server:
        with pytest.raises(BackendError) as caught:
            await collect(make_http_client(profile(server, api_kind=kind, headers=headers, key=Secret("sk-own-0123"))))
    assert "tools: …, … and … are no good" in str(caught.value)
