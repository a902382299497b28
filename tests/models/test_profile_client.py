"""Profile settings in use: sampling, price, proxy, CA, timeouts, dialect and context window."""

import asyncio
import json
import logging
import ssl

import pytest
from model_helpers import collect, make_request, of_type, text_of

from ostler.core.errors import BackendError, UsageError
from ostler.models.http_model import HttpModel
from ostler.models.model_choice import choose_model, make_http_client, make_model
from ostler.models.model_settings import Sampling
from ostler.models.model_types import CallChunk, RetryScheduled, TokenPrice, Usage
from ostler.settings.load import load
from ostler.settings.model_profiles import Profile
from ostler.settings.schema_models import PriceConfig
from ostler.settings.secret import Secret
from ostler.testing.model_server import ScriptedModelServer, stall, status, text


def profile(server=None, **values):
    defaults = {"name": "p", "model": "m"} | ({"base_url": server.base_url} if server else {})
    return Profile(**(defaults | values))


async def run(reply, **values):
    """Return the chunks of one reply to a profile's client, and the received request."""
    async with ScriptedModelServer(reply) as server:
        chunks = await collect(make_http_client(profile(server, **values)))
    return chunks, server.requests[0].json


@pytest.mark.req("MD-2")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_sampling_is_sent(kind):
    _, sent = await run(text("a"), api_kind=kind, temperature=0.25, top_p=0.5, max_output_tokens=77)
    assert (sent["temperature"], sent["top_p"], sent["max_tokens"]) == (0.25, 0.5, 77)
    _, sent = await run(text("a"), api_kind=kind)
    assert not {"temperature", "top_p"} & sent.keys()


def test_request_keeps_its_own_parameters():
    filled = Sampling(77, 0.25, None).apply_defaults(make_request(temperature=0.0))
    assert (filled.max_tokens, filled.temperature, filled.top_p) == (77, 0.0, None)
    request = make_request()
    assert Sampling().apply_defaults(request) is request


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_cost_is_computed_if_the_price_is_known(kind):
    reply = text("a").with_usage(3_000_000, 1_000_000, 1_000_000)
    for price, cost in ((PriceConfig(2, 8, 0.5), 4 + 8 + 0.5), (PriceConfig(2, 8), 6 + 8), (None, None)):
        chunks, _ = await run(reply, api_kind=kind, price=price)
        assert of_type(chunks, Usage) == [Usage(3_000_000, 1_000_000, 1_000_000, cost)]


def test_cost_is_never_negative():
    assert TokenPrice(2, 8, 0).add_cost(Usage(10, 0, 1000)).cost == 0


async def test_profile_proxy_is_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with ScriptedModelServer(text("through the proxy")) as server:
        proxy = Secret(f"http://name:word@127.0.0.1:{server.port}")
        chunks = await collect(make_http_client(profile(base_url="http://model.example/v1", proxy=proxy)))
    assert text_of(chunks) == "through the proxy"
    assert server.requests[0].path == "http://model.example/v1/chat/completions"
    assert server.requests[0].headers["proxy-authorization"].startswith("Basic ")


def test_invalid_proxy_error_names_the_setting():
    with pytest.raises(BackendError, match="the profile's `proxy`") as caught:
        make_http_client(profile(base_url="http://model.example/v1", proxy=Secret("socks5://user:word@h:1")))
    assert "word" not in str(caught.value)


async def test_profile_ca_is_trusted(certificates):
    async with ScriptedModelServer(text("trusted"), tls=certificates.server_context()) as server:
        chunks = await collect(make_http_client(profile(server, ca=certificates.path("ca.pem"))))
        assert text_of(chunks) == "trusted"
        with pytest.raises(BackendError, match="the profile's `ca`"):
            await collect(make_http_client(profile(server)))
        with pytest.raises(BackendError, match=r"cannot read .*none\.pem"):
            await collect(make_http_client(profile(server, ca="~/none.pem")))


async def test_profile_client_certificate_is_sent(certificates):
    ca = {"ca": certificates.path("ca.pem")}
    client = {"client_cert": certificates.path("client.pem"), "client_key": certificates.path("client.key")}
    async with ScriptedModelServer(text("known"), tls=certificates.server_context(require_client=True)) as server:
        assert text_of(await collect(make_http_client(profile(server, **ca, **client)))) == "known"


@pytest.mark.parametrize("max_version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_missing_or_rejected_client_certificate_names_the_setting(certificates, max_version):
    """The server's alert may be lost when it closes the connection; both errors name the setting."""
    context = certificates.server_context(require_client=True)
    context.maximum_version = max_version
    ca, untrusted = {"ca": certificates.path("ca.pem")}, certificates.untrusted_client()
    cases = (({}, "requires? a client certificate"), (untrusted, "reject.* client certificate.*untrusted.pem"))
    for client, message in cases:
        async with ScriptedModelServer(tls=context) as server:
            model = make_http_client(profile(server, **ca, **client))
            with pytest.raises(BackendError, match=message) as caught:
                await model._config.http.fetch("GET", "/v1/models", timeout=60, limit=1000)
            await model.aclose()
        assert "`clientCert`" in caught.value.fault.hint


async def test_certificate_error_page_is_recognized():
    page = "<html><head><title>400 No required SSL certificate was sent</title></head></html>"
    async with ScriptedModelServer(status(400, page)) as server:
        with pytest.raises(BackendError, match="requires a client certificate") as caught:
            await collect(make_http_client(profile(server)))
    assert "`clientCert`" in caught.value.fault.hint


@pytest.mark.req("MD-5")
async def test_profile_timeout_limits_silence():
    async with ScriptedModelServer(stall()) as server:
        model = make_http_client(profile(server, timeout=0.1))
        stream = model.stream(make_request())
        retry = await anext(stream)
        assert isinstance(retry, RetryScheduled)
        assert "has sent nothing" in retry.reason
        await stream.aclose()
        await model.aclose()


@pytest.mark.req("MD-8")
async def test_window_is_fetched_during_the_first_request():
    async with ScriptedModelServer(text("a"), models=[{"id": "m", "max_model_len": 8192}]) as server:
        model = make_model(profile(server))
        assert model.context_limit == 32_768
        async with asyncio.timeout(5):
            chunks = [chunk async for chunk in model.stream(make_request())]
            while model.context_limit != 8192:
                await asyncio.sleep(0)
        assert text_of(chunks) == "a"
        await model.aclose()


async def test_unanswered_window_fetch_ends_when_closed():
    connected, disconnected = asyncio.Event(), asyncio.Event()

    async def never_answer(reader, writer):
        connected.set()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        disconnected.set()

    async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        model = make_model(profile(base_url=f"http://127.0.0.1:{port}/v1"))
        await connected.wait()
        before = asyncio.all_tasks()
        await model.aclose()
        assert len(asyncio.all_tasks()) < len(before)
        await disconnected.wait()


async def test_configured_window_is_not_fetched_over_https():
    async with ScriptedModelServer() as server:
        model = make_model(profile(base_url=f"https://127.0.0.1:{server.port}/v1", context=1000))
        assert model.context_limit == 1000
        await asyncio.sleep(0)
        await model.aclose()
    assert server.connections == 0


async def test_invalid_key_does_not_break_the_window_fetch():
    model = make_model(profile(base_url="http://127.0.0.1:9/v1", key=Secret("ключ")))
    await asyncio.sleep(0)
    await model.aclose()


@pytest.mark.req("MD-6")
@pytest.mark.parametrize(("dialect", "sends_tools"), [("native", True), ("text", False), ("xnl", False)])
async def test_profile_dialect_is_used(dialect, sends_tools):
    content = '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>'
    async with ScriptedModelServer(text(content)) as server:
        chunks = await collect(make_model(profile(server, dialect=dialect, context=20_000)))
    assert ("tools" in server.requests[0].json) == sends_tools
    assert [call.tool for call in of_type(chunks, CallChunk)] == ["read_file"]


@pytest.mark.req("MD-6")
async def test_dialect_flag_overrides_the_profile(tmp_path):
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
async def test_log_names_provider_and_kind(caplog):
    caplog.set_level(logging.INFO, "ostler.models")
    await run(text("a"), provider="acme", api_kind="anthropic")
    assert "provider acme, apiKind anthropic" in caplog.text


@pytest.mark.req("MD-10", "MD-7")
async def test_session_cannot_switch_to_the_embedded_model(tmp_path):
    async with ScriptedModelServer() as server:
        choice = await choose_model(
            load(tmp_path, {"HOME": str(tmp_path)}), {"base_url": server.base_url, "model": "m"}, {}
        )
        for name in ("embedded", "embedded/tiny"):
            with pytest.raises(UsageError, match=f"start a new session: ostler --model {name}"):
                choice.make(name)


def test_http_client_is_an_http_model():
    assert isinstance(make_http_client(profile(base_url="http://127.0.0.1:9/v1")), HttpModel)


@pytest.mark.req("MD-3")
async def test_invalid_certificate_error_shows_only_its_path(tmp_path):
    (tmp_path / "me.pem").write_text("-----BEGIN PRIVATE KEY-----\nplanted-0123456789\n-----END PRIVATE KEY-----\n")
    async with ScriptedModelServer() as server:
        url = server.base_url.replace("http:", "https:")
        for files in ({"client_cert": str(tmp_path / "me.pem")}, {"ca": str(tmp_path / "me.pem")}):
            with pytest.raises(BackendError, match=r"me\.pem is not a PEM file") as caught:
                await collect(make_http_client(profile(base_url=url, **files)))
            assert "planted" not in str(caught.value)


@pytest.mark.req("MD-3")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_headers_and_query_are_masked_in_errors(kind):
    headers = {"X-Zone": Secret("zone-0123456789"), "X-Team": Secret("tools")}
    echo = status(401, {"error": {"message": "tools: zone-0123456789 and a b%c and a%20b%25c and plain are invalid"}})
    async with ScriptedModelServer(echo) as server:
        url = f"{server.base_url}?sig=a%20b%25c&v=1"
        with pytest.raises(BackendError) as caught:
            await collect(make_http_client(profile(base_url=url, api_kind=kind, headers=headers)))
    assert "rejected the API key" in str(caught.value)
    assert not {"zone-0123456789", "a b%c", "a%20b%25c"} & set(str(caught.value).split(" and "))
    async with ScriptedModelServer(status(400, {"error": {"message": "zone-0123456789, a b%c, a%20b%25c"}})) as server:
        url = f"{server.base_url}?sig=a%20b%25c&v=1"
        with pytest.raises(BackendError, match=r"…, …, …"):
            await collect(make_http_client(profile(base_url=url, api_kind=kind, headers=headers)))
    async with ScriptedModelServer(status(401)) as server:
        with pytest.raises(BackendError, match="requires an API key"):
            await collect(make_http_client(profile(server, api_kind=kind, headers={"X-Team": Secret("tools-team")})))


@pytest.mark.req("MD-3")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_secret_headers_are_masked_in_errors(kind):
    headers = {
        "X-Api-Token": Secret("corp-0123456789"),
        "Authorization": Secret("Basic abcdef012345"),
        "X-Team": Secret("tools"),
    }
    echo = status(400, {"error": {"message": "tools: corp-0123456789, abcdef012345 and sk-own-0123 are invalid"}})
    async with ScriptedModelServer(echo) as server:
        with pytest.raises(BackendError) as caught:
            await collect(make_http_client(profile(server, api_kind=kind, headers=headers, key=Secret("sk-own-0123"))))
    assert "tools: …, … and … are invalid" in str(caught.value)
