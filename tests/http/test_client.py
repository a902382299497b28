"""The HTTP client with real sockets: framings, reused connections, broken peers, TLS and proxies."""

import asyncio
import contextlib
import gzip
import subprocess
import sys
import zlib

import httpx2
import pytest

from ostler.core.errors import BackendError, UsageError
from ostler.http.client import HttpClient
from ostler.http.content_encoding import ContentDecoder
from ostler.http.dialer import Dialer
from ostler.http.proxy import parse_proxy
from ostler.http.server_closing import close_server
from ostler.http.tls import TlsFiles
from ostler.http.url import ServerOrigin
from ostler.models.base_url import parse_base_url
from ostler.testing.model_server import ScriptedModelServer, drop, raw, stall, status, text

TARGET = "/v1/chat/completions"
BODY = b'{"stream": true}'


def http_to(port, **options):
    return HttpClient(Dialer(ServerOrigin("http", "127.0.0.1", port), **options))


@contextlib.asynccontextmanager
async def peer(*answers: bytes, keep_open: bool = False, read_head: bool = True):
    """A server that answers each connection with raw bytes, then closes or waits."""
    remaining = list(answers)
    tasks = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await (reader.readuntil(b"\r\n\r\n") if read_head else reader.read(1))
            writer.write(remaining.pop(0))
            await writer.drain()
            if keep_open:
                await reader.read()
        except (asyncio.CancelledError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await close_server(server, tasks)


async def body_of(response):
    assert await response.read_head()
    return b"".join([data async for data in response.iter_data()])


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("write_size", [0, 1, 7])
async def test_body_equals_that_of_httpx2(framing, write_size):
    parts = (b"data: one\n\n", "data: zwölf\n\n".encode(), b"x" * 300)
    reply = raw(*parts).with_framing(framing).with_write_size(write_size)
    async with ScriptedModelServer(reply, reply) as server:
        http = http_to(server.port)
        body = await body_of(await http.send("POST", TARGET, (), BODY))
        async with httpx2.AsyncClient() as reference:
            expected = await reference.post(f"http://127.0.0.1:{server.port}{TARGET}", content=b"{}")
        await http.aclose()
    assert body == expected.content == b"".join(parts)


async def test_request_equals_that_of_httpx2():
    async with ScriptedModelServer(text("a"), text("a")) as server:
        http = http_to(server.port)
        headers = [("content-type", "application/json"), ("authorization", "Bearer k")]
        await body_of(await http.send("POST", TARGET, headers, b'{"a":"\xc3\xbc"}'))
        async with httpx2.AsyncClient() as reference:
            url = f"http://127.0.0.1:{server.port}{TARGET}"
            await reference.post(url, headers=headers, content=b'{"a":"\xc3\xbc"}')
        await http.aclose()
    sent, expected = server.requests
    assert (sent.method, sent.path, sent.body) == (expected.method, expected.path, expected.body)
    for name in ("host", "content-length", "content-type", "authorization"):
        assert sent.headers[name] == expected.headers[name]
    assert sent.headers["accept-encoding"] == "identity"


@pytest.mark.req("DX-6")
async def test_one_connection_serves_many_requests():
    async with ScriptedModelServer(text("a"), status(500), text("b").with_framing("length"), text("c")) as server:
        http = http_to(server.port)
        for _ in range(4):
            await body_of(await http.send("POST", TARGET, (), BODY))
        await http.aclose()
    assert [request.connection for request in server.requests] == [1, 1, 1, 1]


async def test_concurrent_requests_have_own_connections_and_one_is_reused():
    async with ScriptedModelServer(text("a"), text("b"), text("c")) as server:
        http = http_to(server.port)
        first, second = [await http.send("POST", TARGET, (), BODY) for _ in range(2)]
        await asyncio.gather(body_of(first), body_of(second))
        await body_of(await http.send("POST", TARGET, (), BODY))
        await http.aclose()
    assert server.connections == 2


@pytest.mark.parametrize("reset", [False, True])
async def test_dead_idle_connection_is_replaced_once(reset):
    async with ScriptedModelServer(text("a"), drop(reset=reset), text("b")) as server:
        http = http_to(server.port)
        await body_of(await http.send("POST", TARGET, (), BODY))
        assert b"[DONE]" in await body_of(await http.send("POST", TARGET, (), BODY))
        await http.aclose()
    assert [request.connection for request in server.requests] == [1, 1, 2]


async def test_closed_idle_connection_is_not_used():
    async with ScriptedModelServer(text("a").then_close(), text("b")) as server:
        http = http_to(server.port)
        await body_of(await http.send("POST", TARGET, (), BODY))
        assert b"[DONE]" in await body_of(await http.send("POST", TARGET, (), BODY))
        await http.aclose()
    assert server.connections == 2


async def test_failed_new_connection_is_not_retried():
    async with ScriptedModelServer(drop()) as server:
        http = http_to(server.port)
        response = await http.send("POST", TARGET, (), BODY)
        with pytest.raises(BackendError, match="closed the connection before it answered") as caught:
            await response.read_head()
    assert caught.value.fault.code == "closed"


async def test_dead_idle_connection_is_not_replaced_twice():
    async with ScriptedModelServer(text("a"), drop(), drop()) as server:
        http = http_to(server.port)
        await body_of(await http.send("POST", TARGET, (), BODY))
        response = await http.send("POST", TARGET, (), BODY)
        with pytest.raises(BackendError):
            await response.read_head()


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("reset", [False, True])
async def test_interrupted_body(framing, reset):
    async with ScriptedModelServer(raw(b"x" * 100).with_framing(framing).cut_after(50, reset=reset)) as server:
        http = http_to(server.port)
        response = await http.send("POST", TARGET, (), BODY)
        with pytest.raises(BackendError, match=r"closed the connection") as caught:
            await body_of(response)
    assert caught.value.fault.code == "closed"
    assert f"127.0.0.1:{server.port}" in str(caught.value)


async def test_read_head_returns_false_on_timeout_and_can_be_repeated():
    async with ScriptedModelServer(stall()) as server:
        http = http_to(server.port)
        response = await http.send("POST", TARGET, (), BODY)
        assert not await response.read_head(0.01)
        assert not await response.read_head(0.01)
        response.close()
        await server.wait_for_disconnects()


async def test_silence_in_a_body_is_an_empty_read():
    async with ScriptedModelServer(raw(b"abc").stall_after(1)) as server:
        http = http_to(server.port)
        response = await http.send("POST", TARGET, (), BODY)
        assert await response.read_head()
        reads = response.iter_data(0.01)
        assert await anext(reads) == b"abc"
        assert await anext(reads) == b""
        assert await anext(reads) == b""
        await reads.aclose()
        response.close()
        await server.wait_for_disconnects()


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "malformed", "invalid HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46\r\n\r\n", "malformed", "invalid HTTP"),
        (b"", "closed", "before it answered"),
        (b"HTTP/1.1 200 OK\r\n", "closed", "before it answered"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, "malformed", "invalid HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000, "malformed", "invalid HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", "malformed", "invalid HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n", "malformed", "invalid HTTP"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "malformed", "invalid HTTP"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "malformed", "broken framing"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\nx", "malformed", "compressed"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nwxyz", "malformed", "damaged"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b", "closed", "middle"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"x" * 99, mtime=0)[:-9],
            "closed",
            "middle",
        ),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "malformed", ""),
    ],
)
async def test_malformed_responses(answer, code, message):
    async with peer(answer) as port:
        http = http_to(port)
        response = await http.send("POST", "/", (), b"{}")
        with pytest.raises(BackendError) as caught:
            await body_of(response)
        assert (caught.value.fault.code, message in str(caught.value)) == (code, True)
        await http.aclose()


@pytest.mark.req("MD-1")
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP", "deflate", "raw deflate", "two members"])
async def test_a_compressed_reply_is_decoded(encoding):
    content = bytes(range(256)) * 5_000
    packed = {
        "deflate": zlib.compress(content),
        "raw deflate": zlib.compress(content, wbits=-15),
        "two members": gzip.compress(content[:999]) + gzip.compress(content[999:]),
    }.get(encoding, gzip.compress(content))
    name = {"raw deflate": "deflate", "two members": "gzip"}.get(encoding, encoding).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: " + name + b"\r\n"
    async with peer(head + b"content-length: %d\r\n\r\n" % len(packed) + packed, head + b"\r\n" + packed) as port:
        http = http_to(port)
        for _ in range(2):
            assert await body_of(await http.send("GET", "/")) == content
        await http.aclose()


@pytest.mark.req("MD-1")
def test_a_compressed_bomb_is_decoded_in_small_pieces():
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 100_000
    pieces = ContentDecoder().decode(bomb)
    assert max(len(next(pieces)) for _ in range(20)) <= 262_144


async def test_interim_responses_and_http_1_0_are_supported():
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    async with peer(
        interim + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-a: 1\r\nX-A: 2\r\n\r\nok", b"HTTP/1.0 200 OK\r\n\r\nold"
    ) as port:
        http = http_to(port)
        response = await http.send("POST", "/", (), b"{}")
        assert await body_of(response) == b"ok"
        assert response.headers["x-a"] == "1, 2"
        assert await body_of(await http.send("GET", "/")) == b"old"
        await http.aclose()


async def test_trailing_bytes_close_the_connection():
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n"
    async with peer(answer, b"HTTP/1.1 204 No Content\r\n\r\n", keep_open=True) as port:
        http = http_to(port)
        assert await body_of(await http.send("GET", "/")) == b"ok"
        response = await http.send("GET", "/")
        assert await body_of(response) == b""
        assert response.status == 204
        await http.aclose()


async def test_document_has_size_and_time_limits():
    async with ScriptedModelServer(raw(b"x" * 1000), stall()) as server:
        http = http_to(server.port)
        with pytest.raises(BackendError, match="oversized"):
            await http.fetch("POST", TARGET, (), BODY, timeout=5, limit=999)
        with pytest.raises(BackendError, match="did not answer within") as caught:
            await http.fetch("POST", TARGET, (), BODY, timeout=0.05, limit=999)
        assert caught.value.fault.code == "timeout"
        await server.wait_for_disconnects()


async def test_connection_refused(unused_tcp_port):
    with pytest.raises(BackendError, match=f"connection refused by 127.0.0.1:{unused_tcp_port}") as caught:
        await http_to(unused_tcp_port).send("GET", "/")
    assert caught.value.fault.code == "unreachable"
    assert "start the server" in str(caught.value)


async def test_hint_names_the_setting_of_the_address(unused_tcp_port):
    http = http_to(unused_tcp_port, setting="connection.api_url")
    with pytest.raises(BackendError) as caught:
        await http.send("GET", "/")
    assert caught.value.fault.hint == "start the server, or change connection.api_url"
    async with peer(b"junk\r\n\r\n") as port:
        with pytest.raises(BackendError) as caught:
            await body_of(await http_to(port, setting="connection.api_url").send("GET", "/"))
    assert caught.value.fault.hint == "check connection.api_url and its port"


async def test_headers_that_occur_twice_are_joined_and_cookies_stay_apart():
    lines = [
        "a: 1",
        "Set-Cookie: x=1; Expires=Wed, 21 Oct 2090 07:28:00 GMT",
        "a: 2",
        "set-cookie: y=2",
        "content-length: 0",
    ]
    async with peer("\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode()) as port:
        document = await http_to(port).fetch("GET", "/", timeout=5, limit=10)
    assert document.headers["a"] == "1, 2"
    assert document.headers["set-cookie"].split("\n") == ["x=1; Expires=Wed, 21 Oct 2090 07:28:00 GMT", "y=2"]


async def test_unknown_host():
    with pytest.raises(BackendError) as caught:
        await HttpClient(Dialer(ServerOrigin("http", "no-such-host.invalid", 80))).send("GET", "/")
    assert caught.value.fault.code in ("unreachable", "timeout")


async def test_connection_timeout(monkeypatch):
    async def never(*_, **__):
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
    with pytest.raises(BackendError, match=r"127.0.0.1:9 did not accept a connection within 0.01 s") as caught:
        await http_to(9, timeout=0.01).send("GET", "/")
    assert caught.value.fault.code == "timeout"


@pytest.mark.req("MD-3")
@pytest.mark.parametrize("value", ["sk-secret\r\nx-evil: 1", "sk-secret-ключ", "sk-\x00secret"])
async def test_invalid_key_is_not_shown(value):
    with pytest.raises(UsageError, match="check the key") as caught:
        await http_to(9).send("POST", "/", [("authorization", value)], b"")
    assert "secret" not in str(caught.value)


async def test_response_before_a_large_body_was_read():
    response_bytes = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\n{}"
    async with peer(response_bytes, keep_open=True) as port:
        http = http_to(port)
        response = await http.send("POST", "/", (), b"x" * 20_000_000)
        assert await body_of(response) == b"{}"
        assert response.status == 413
        await http.aclose()


class TestTls:
    async def _post(self, server, trust, host="127.0.0.1"):
        http = HttpClient(Dialer(ServerOrigin("https", host, server.port), tls_files=trust))
        try:
            return await body_of(await http.send("POST", TARGET, (), BODY))
        finally:
            await http.aclose()

    async def test_custom_ca(self, certificates):
        async with ScriptedModelServer(text("a"), tls=certificates.server_context()) as server:
            assert b"[DONE]" in await self._post(server, TlsFiles(ca_file=certificates.path("ca.pem")))

    async def test_ca_from_environment(self, certificates, monkeypatch):
        monkeypatch.setenv("SSL_CERT_FILE", certificates.path("ca.pem"))
        async with ScriptedModelServer(text("a"), tls=certificates.server_context()) as server:
            assert b"[DONE]" in await self._post(server, None)

    async def test_untrusted_certificate(self, certificates):
        async with ScriptedModelServer(tls=certificates.server_context()) as server:
            with pytest.raises(BackendError, match="not trusted") as caught:
                await self._post(server, None)
        assert caught.value.fault.code == "tls"
        assert "SSL_CERT_FILE or the profile's `ca`" in str(caught.value)

    async def test_fingerprint_replaces_authority_and_name(self, certificates):
        async with ScriptedModelServer(text("a"), tls=certificates.server_context()) as server:
            trust = TlsFiles(fingerprint=certificates.fingerprint().upper())
            assert b"[DONE]" in await self._post(server, trust, host="localhost")

    async def test_trusted_certificate_with_another_fingerprint_gets_no_request(self, certificates):
        trust = TlsFiles(ca_file=certificates.path("ca.pem"), fingerprint=certificates.fingerprint("client.pem"))
        async with ScriptedModelServer(tls=certificates.server_context()) as server:
            with pytest.raises(BackendError, match="not the one of the pairing") as caught:
                await self._post(server, trust)
        assert caught.value.fault.code == "tls"
        assert server.requests == []

    async def test_certificate_for_another_name(self, certificates):
        async with ScriptedModelServer(tls=certificates.server_context()) as server:
            with pytest.raises(BackendError, match="not trusted") as caught:
                await self._post(server, TlsFiles(ca_file=certificates.path("ca.pem")), host="127.1")
        assert caught.value.fault.code == "tls"

    async def test_client_certificate(self, certificates):
        trust = TlsFiles(certificates.path("ca.pem"), certificates.path("client.pem"), certificates.path("client.key"))
        async with ScriptedModelServer(text("a"), tls=certificates.server_context(require_client=True)) as server:
            assert b"[DONE]" in await self._post(server, trust)
            with pytest.raises(BackendError) as caught:
                await self._post(server, TlsFiles(ca_file=certificates.path("ca.pem")))
        assert caught.value.fault.code in ("tls", "closed")

    async def test_server_without_tls(self):
        async with peer(b"HTTP/1.1 400 Bad Request\r\n\r\n", keep_open=True, read_head=False) as port:
            with pytest.raises(BackendError, match="does not speak TLS; use http://") as caught:
                await HttpClient(Dialer(ServerOrigin("https", "127.0.0.1", port))).send("GET", "/")
        assert caught.value.fault.code == "tls"

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            ({"ca_file": "/nowhere/ca.pem"}, "cannot read"),
            ({"ca_file": __file__}, "not a PEM file"),
            ({"client_cert": "/nowhere/c.pem"}, "cannot read"),
        ],
    )
    async def test_invalid_files(self, files, message):
        with pytest.raises(BackendError, match=message) as caught:
            await HttpClient(Dialer(ServerOrigin("https", "127.0.0.1", 9), tls_files=TlsFiles(**files))).send(
                "GET", "/"
            )
        assert caught.value.fault.code == "tls"


class TestProxy:
    """Requests through a proxy; only the proxy can resolve the target's name."""

    @contextlib.asynccontextmanager
    async def _proxy(self, port, answer=b"HTTP/1.1 200 Connection established\r\n\r\n"):
        heads = []
        tasks = set()

        async def pump(reader, writer):
            while data := await reader.read(65536):
                writer.write(data)
            writer.close()

        async def serve(reader, writer):
            tasks.add(asyncio.current_task())
            head = await reader.readuntil(b"\r\n\r\n")
            heads.append(head.decode())
            try:
                upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", port)
                if head.startswith(b"CONNECT"):
                    writer.write(answer)
                else:
                    upstream_writer.write(head)
                await asyncio.gather(pump(reader, upstream_writer), pump(upstream_reader, writer))
            except (OSError, asyncio.CancelledError):
                pass
            finally:
                writer.close()
                upstream_writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
        finally:
            await close_server(server, tasks)

    async def test_fingerprint_is_checked_in_a_tunnel(self, certificates):
        origin, wrong = ServerOrigin("https", "model.example", 443), certificates.fingerprint("client.pem")
        async with (
            ScriptedModelServer(text("a"), tls=certificates.server_context()) as server,
            self._proxy(server.port) as (address, _),
        ):
            proxy = parse_proxy(f"http://{address}")
            with pytest.raises(BackendError, match="not the one of the pairing"):
                await Dialer(origin, proxy=proxy, tls_files=TlsFiles(fingerprint=wrong)).connect()
            right = TlsFiles(fingerprint=certificates.fingerprint())
            http = HttpClient(Dialer(origin, proxy=proxy, tls_files=right))
            assert b"[DONE]" in await body_of(await http.send("POST", TARGET, (), BODY))
            await http.aclose()

    async def test_https_uses_a_tunnel(self, certificates):
        trust = TlsFiles(ca_file=certificates.path("ca.pem"))
        context = certificates.server_context()
        async with (
            ScriptedModelServer(text("a"), text("b"), tls=context) as server,
            self._proxy(server.port) as (address, heads),
        ):
            proxy = parse_proxy(f"http://me:secret@{address}")
            http = HttpClient(Dialer(ServerOrigin("https", "model.example", 443), proxy=proxy, tls_files=trust))
            for _ in range(2):
                assert b"[DONE]" in await body_of(await http.send("POST", TARGET, (), BODY))
            await http.aclose()
        assert len(heads) == 1
        assert heads[0].startswith("CONNECT model.example:443 HTTP/1.1\r\n")
        assert "proxy-authorization: basic bwu6c2vjcmv0" in heads[0].lower()
        assert [request.headers["host"] for request in server.requests] == ["model.example"] * 2
        assert all("proxy-authorization" not in request.headers for request in server.requests)

    async def test_http_uses_the_absolute_url(self):
        async with ScriptedModelServer(text("a")) as server, self._proxy(server.port) as (address, heads):
            proxy = parse_proxy(f"http://me:secret@{address}")
            http = HttpClient(Dialer(parse_base_url("http://model.example/v1").origin, proxy=proxy))
            assert b"[DONE]" in await body_of(await http.send("POST", TARGET, (), BODY))
            await http.aclose()
        assert heads[0].startswith(f"POST http://model.example{TARGET} HTTP/1.1\r\n")
        assert "proxy-authorization" in heads[0].lower()

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n", "user name and password"),
            (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "refused the connection to model.example:443"),
            (b"hello\r\n\r\n", "sent an invalid response"),
        ],
    )
    async def test_proxy_errors(self, answer, message):
        async with ScriptedModelServer() as server, self._proxy(server.port, answer) as (address, _):
            http = HttpClient(
                Dialer(ServerOrigin("https", "model.example", 443), proxy=parse_proxy(f"me:hunter2@{address}"))
            )
            with pytest.raises(BackendError) as caught:
                await http.send("GET", "/")
        assert caught.value.fault.code == "proxy"
        assert message in str(caught.value)
        assert "hunter2" not in str(caught.value)

    async def test_unreachable_proxy(self, unused_tcp_port):
        proxy = parse_proxy(f"127.0.0.1:{unused_tcp_port}")
        with pytest.raises(BackendError, match=f"proxy.*127.0.0.1:{unused_tcp_port}") as caught:
            await HttpClient(Dialer(ServerOrigin("https", "model.example", 443), proxy=proxy)).send("GET", "/")
        assert caught.value.fault.code == "proxy"


@pytest.mark.req("DX-6")
def test_import_is_fast():
    code = "import sys, ostler.http.client, ostler.http.dialer; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    slow_imports = {
        "httpx2",
        "urllib.request",
        "http.client",
        "email",
        "json",
        "ipaddress",
        "ostler.http.tls",
        "random",
    }
    assert slow_imports.isdisjoint(loaded)
