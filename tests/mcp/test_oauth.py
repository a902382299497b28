"""Logins at remote servers with OAuth, against an authorization server over HTTP."""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from tests.mcp.fake_authorization_server import FakeAuthorizationServer
from tests.mcp.fake_http_server import FakeHttpServer

from ostler.core.errors import BackendError, OstlerError, ToolError, UsageError
from ostler.core.permission import QuestionReply
from ostler.credentials.store import LocalCredentials
from ostler.mcp.connection import Challenge
from ostler.mcp.http_connection import connect_http
from ostler.mcp.oauth_access import RemoteAccess, token_name
from ostler.mcp.oauth_discovery import read_challenge, server_identity
from ostler.mcp.oauth_documents import Documents
from ostler.mcp.oauth_login import LoginFlow, find_challenge, log_out
from ostler.mcp.oauth_logins import Logins
from ostler.mcp.oauth_redirect import Expected, read_code, read_pasted
from ostler.mcp.server import McpServer
from ostler.mcp.server_entry import OAuthEntry, ServerEntry
from ostler.mcp.tool_list_cache import ToolListCache

pytestmark = pytest.mark.req("MC-6")


async def decline(question):
    return QuestionReply("decline")


def browse(address):
    """Do what a browser does: follow the redirect to the address on this machine."""
    with urllib.request.urlopen(address, timeout=10) as page:
        return page.read().decode()


class Site:
    """A protected server, its authorization server, and the user's store of credentials."""

    def __init__(self, far, authority, folder):
        self.far, self.authority = far, authority
        self.store = LocalCredentials(folder / "home")
        self.logins = Logins(self.store)
        self._folder = folder
        self.locks = folder / "home" / "mcp"
        self._made = []
        self.changed = asyncio.Event()

    def entry(self, **oauth):
        return ServerEntry("far", url=self.far.url, start_timeout=10.0, call_timeout=10.0, oauth=OAuthEntry(**oauth))

    @property
    def login(self):
        return self.logins.get(server_identity(self.far.url))

    async def log_in(self, open_page=browse, read_pasted=None, **oauth):
        pages = []

        def show(address, issuer):
            assert issuer == self.authority.issuer
            pages.append(asyncio.ensure_future(asyncio.to_thread(open_page, address)))

        flow = LoginFlow(self.entry(**oauth), self.logins, self.locks, {}, show, read_pasted)
        try:
            return await flow.run(await find_challenge(self.entry(), {}, "1"))
        finally:
            await asyncio.gather(*pages, return_exceptions=True)

    def server(self):
        """Return a server as a session has it."""
        entry = self.entry()

        async def connect(handler):
            access = RemoteAccess(entry, lambda: self.store, {}, self.locks)
            return await connect_http(entry, handler, {}, access)

        server = McpServer(
            entry,
            connect,
            ToolListCache(self._folder / "cache"),
            "1",
            interactive=False,
            wait_for_login=self.changed.wait,
        )
        self._made.append(server)
        return server

    async def aclose(self):
        for server in self._made:
            await server.aclose()


@pytest.fixture
async def site(tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    with FakeHttpServer() as far, FakeAuthorizationServer() as authority:
        far.protect(authority)
        made = Site(far, authority, tmp_path)
        yield made
        await made.aclose()


async def call(server):
    return (await server.call("echo", {"text": "hi"}, decline))["content"][0]["text"]


class TestLogin:
    async def test_signs_in_with_pkce_for_this_server_only(self, site):
        await site.log_in()
        (asked,), (token,) = site.authority.sent("/authorize"), site.authority.sent("/token")
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == token["resource"] == site.far.resource
        assert "scope" not in asked
        (registered,) = site.authority.sent("/register")
        assert registered["application_type"] == "native"
        assert registered["redirect_uris"] == [asked["redirect_uri"]]
        assert await call(site.server()) == "far: hi"

    async def test_is_stored_by_issuer_and_server(self, site):
        await site.log_in()
        (name,) = site.store.names()
        assert name.account == f"{site.authority.issuer} {site.far.resource}"
        other = ServerEntry("other", url=f"{site.far.resource}/other", oauth=OAuthEntry())
        assert site.logins.get(server_identity(other.url)) is None

    @pytest.mark.parametrize("era", ["modern", "legacy"])
    async def test_server_says_which_login_it_needs(self, site, era):
        site.far.era = era
        with pytest.raises(ToolError, match="needs login: ostler mcp login far"):
            await site.server().client()

    async def test_scope_of_the_refusal_is_asked_for(self, site):
        site.far.challenge = 'scope="read write"'
        site.far.metadata["scopes_supported"] = ["all"]
        await site.log_in()
        assert site.authority.sent("/authorize")[0]["scope"] == "read write"

    async def test_supported_scopes_are_asked_for_and_a_refresh_token(self, site):
        site.far.metadata["scopes_supported"] = ["all"]
        site.authority.metadata["scopes_supported"] = ["all", "offline_access"]
        await site.log_in()
        assert site.authority.sent("/authorize")[0]["scope"] == "all offline_access"

    async def test_is_used_instead_of_a_token_for_the_host(self, site):
        site.store.set(token_name(site.entry()), "an-old-token")
        with pytest.raises(ToolError, match="needs login"):
            await site.server().client()
        await site.log_in()
        assert await call(site.server()) == "far: hi"

    async def test_configured_client_is_used(self, site):
        site.authority.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
        await site.log_in(client_id="me", client_secret="s3:cret", scope="mine")
        assert site.authority.sent("/register") == []
        (token,) = site.authority.sent("/token")
        assert (token["client_id"], token["basic_secret"]) == ("me", "s3:cret")
        assert site.authority.sent("/authorize")[0]["scope"] == "mine"

    async def test_configured_client_is_not_sent_to_another_authorization_server(self, site):
        await site.log_in(client_id="me", client_secret="s3cret")
        with FakeAuthorizationServer() as other:
            site.far.protect(other)
            with pytest.raises(UsageError, match="now uses the authorization server"):
                await site.log_in(client_id="me", client_secret="s3cret")
            assert other.sent("/authorize") == other.sent("/token") == []

    async def test_server_without_registration_needs_a_client_id(self, site):
        site.authority.metadata["registration_endpoint"] = ""
        with pytest.raises(
            UsageError, match=r"does not register clients.*redirect URI http://127\.0\.0\.1:\d+/callback"
        ):
            await site.log_in()

    async def test_url_of_a_document_is_the_client_id_if_the_server_supports_it(self, site):
        site.authority.metadata["client_id_metadata_document_supported"] = True
        await site.log_in(client_id="https://example.com/client.json")
        assert site.authority.sent("/authorize")[0]["client_id"] == "https://example.com/client.json"

    async def test_issuer_with_a_path_is_found(self, site):
        with FakeAuthorizationServer("/tenant1") as authority:
            site.authority = authority
            site.far.protect(authority)
            await site.log_in()
        assert site.login.issuer.endswith("/tenant1")

    async def test_server_without_own_metadata_is_its_own_issuer(self, tmp_path):
        """As in protocol version 2025-03-26."""
        with FakeHttpServer() as far, pytest.raises(BackendError, match="offers no login"):
            far.token = "x"
            await LoginFlow(
                ServerEntry("far", url=far.url, oauth=OAuthEntry()),
                Logins(LocalCredentials(tmp_path)),
                tmp_path,
                {},
                print,
            ).run(Challenge())

    async def test_address_can_be_pasted(self, site):
        pasted = asyncio.get_running_loop().create_future()
        problems = []

        def open_page(address):
            class NoRedirect(urllib.request.HTTPRedirectHandler):
                def redirect_request(self, *args):
                    return None

            try:
                urllib.request.build_opener(NoRedirect).open(address, timeout=10)
            except urllib.error.HTTPError as answer:
                location = answer.headers["location"]
                answer.close()
                pasted.get_loop().call_soon_threadsafe(pasted.set_result, location)

        async def read(problem):
            problems.append(problem)
            return "the-code" if not problem else f" {await pasted}\n"

        await site.log_in(open_page, read)
        assert problems[0] == ""
        assert "whole address" in problems[1]
        assert await call(site.server()) == "far: hi"


@pytest.mark.parametrize("streams", [False, True])
async def test_token_that_a_server_repeats_is_masked(site, streams):
    site.far.streams = streams
    await site.log_in()
    token = site.login.access_token
    result = await site.server().call("echo", {"text": f"your token is {token}!"}, decline)
    assert token not in json.dumps(result)
    assert "far: your token is" in result["content"][0]["text"]


class TestHostileLogin:
    async def refused(self, site, message, **oauth):
        with pytest.raises(OstlerError, match=message):
            await site.log_in(**oauth)
        assert site.authority.sent("/token") == []
        assert site.login is None

    @pytest.mark.parametrize("resource", ["https://evil.example/mcp", "http://127.0.0.1:1/mcp", None, 7])
    async def test_metadata_of_another_server(self, site, resource):
        site.far.metadata["resource"] = resource
        await self.refused(site, "for another server")

    async def test_metadata_elsewhere(self, site):
        site.far.challenge = f'resource_metadata="{site.authority.root}/.well-known/oauth-protected-resource"'
        await self.refused(site, "metadata are not at")

    async def test_metadata_of_another_issuer(self, site):
        site.authority.metadata["issuer"] = "https://honest.example"
        await self.refused(site, "another issuer")

    async def test_server_without_pkce(self, site):
        del site.authority.metadata["code_challenge_methods_supported"]
        await self.refused(site, "PKCE")

    @pytest.mark.parametrize("url", ["http://example.com/token", "file:///etc/passwd", "https://a@b/token", "\x1b]8;;"])
    async def test_unsafe_token_endpoint(self, site, url):
        site.authority.metadata["token_endpoint"] = url
        await self.refused(site, "must use https|not a usable URL|scheme")

    @pytest.mark.parametrize("issuer", ["https://evil.example", ""])
    async def test_answer_of_another_issuer(self, site, issuer):
        site.authority.answer = {"iss": issuer}
        await self.refused(site, "does not come from")

    async def test_error_is_shown_without_escape_sequences(self, site):
        site.authority.answer = {"code": "", "error": "access_denied", "error_description": "no\x1b[2J\nway"}
        with pytest.raises(BackendError) as error:
            await site.log_in()
        assert "access_denied: no" in str(error.value)
        assert "\x1b" not in str(error.value)

    async def test_answer_with_another_state_is_ignored(self, site):
        def open_page(address):
            redirect = dict(part.split("=") for part in address.partition("?")[2].split("&"))["redirect_uri"]
            place = urllib.parse.unquote(redirect)
            for target in (
                f"{place}?code=evil&state=x",
                f"{place}?code=evil",
                place.replace("callback", "x?code=evil"),
            ):
                with pytest.raises(urllib.error.HTTPError) as error:
                    browse(target)
                error.value.close()
            return browse(address)

        await site.log_in(open_page)
        assert "evil" not in json.dumps(site.authority.sent("/token"))

    @pytest.mark.parametrize(
        "url", ["http://example.com", "ftp://example.com", "https://u:p@example.com", "example.com", "https://a\nb/"]
    )
    def test_secrets_are_sent_to_safe_addresses_only(self, url):
        for allow_plain in (False, True):
            with pytest.raises(OstlerError):
                Documents({}, allow_plain=allow_plain).check(url)

    def test_plain_http_is_for_this_machine_only(self):
        assert Documents({}, allow_plain=True).check("http://127.0.0.1:1/x")
        with pytest.raises(BackendError, match="https"):
            Documents({}, allow_plain=False).check("http://127.0.0.1:1/x")


class TestRefresh:
    async def expire(self, site):
        site.authority.tokens.clear()

    async def test_refused_token_is_refreshed_once_for_the_same_server(self, site):
        await site.log_in()
        server = site.server()
        await server.client()
        await self.expire(site)
        assert await call(server) == "far: hi"
        refreshes = [fields for fields in site.authority.sent("/token") if fields["grant_type"] == "refresh_token"]
        assert [fields["resource"] for fields in refreshes] == [site.far.resource]
        assert site.login.access_token in site.authority.tokens

    async def test_parallel_calls_of_many_sessions_share_one_refresh(self, site):
        """A refresh token is valid once, so a second use would end the login."""
        await site.log_in()
        sessions = [site.server() for _ in range(4)]
        for server in sessions:
            await server.client()
        await self.expire(site)
        assert await asyncio.gather(*(call(server) for server in sessions for _ in range(3))) == ["far: hi"] * 12
        assert sum(fields["grant_type"] == "refresh_token" for fields in site.authority.sent("/token")) == 1

    async def test_cancelled_call_does_not_lose_the_new_tokens(self, site):
        """The authorization server has replaced the refresh token when the call is cancelled."""
        await site.log_in()
        server = site.server()
        await server.client()
        await self.expire(site)
        site.authority.hold = threading.Event()
        running = asyncio.create_task(call(server))
        await asyncio.to_thread(site.authority.holding.wait, 10)
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        asyncio.get_running_loop().call_soon(site.authority.hold.set)
        with pytest.raises(asyncio.CancelledError):
            await running
        assert site.login.refresh_token in site.authority.refresh_tokens
        assert await call(site.server()) == "far: hi"

    async def test_login_during_a_refresh_is_kept(self, site):
        await site.log_in()
        server = site.server()
        await server.client()
        await self.expire(site)
        site.authority.hold = threading.Event()
        running = asyncio.create_task(call(server))
        await asyncio.to_thread(site.authority.holding.wait, 10)
        hold, site.authority.hold = site.authority.hold, None
        login = asyncio.create_task(site.log_in())
        while len(site.authority.tokens) < 2:  # that of the refresh and that of the login
            await asyncio.sleep(0.01)
        hold.set()
        assert await running == "far: hi"
        assert (await login).access_token == site.login.access_token

    async def test_refused_refresh_needs_a_login_and_is_not_repeated(self, site):
        await site.log_in()
        server = site.server()
        await server.client()
        await self.expire(site)
        site.authority.refuses_refresh = True
        for _ in range(5):
            with pytest.raises(ToolError, match="needs login: ostler mcp login far"):
                await call(server)
        assert sum(fields["grant_type"] == "refresh_token" for fields in site.authority.sent("/token")) == 1
        assert server.status.state == "failed"

    async def test_new_login_is_seen_by_the_next_call(self, site):
        server = site.server()
        for _ in range(5):  # more often than a failing server is started
            with pytest.raises(ToolError, match="needs login"):
                await call(server)
        await site.log_in()
        assert await call(server) == "far: hi"

    async def test_new_login_starts_the_server_of_a_running_session(self, site):
        ready = asyncio.Event()
        server = site.server()
        server.on_change = lambda server: ready.set() if server.status.state == "ready" else None
        await server.start_in_background()
        assert "needs login: ostler mcp login far" in server.status.detail
        await site.log_in()
        site.changed.set()
        async with asyncio.timeout(10):
            await ready.wait()
        assert [tool.name for tool in server.tools] == ["echo", "wait", "cut"]

    async def test_missing_scope_is_asked_for_by_the_next_login(self, site):
        site.far.challenge = 'scope="read"'
        await site.log_in()
        server = site.server()
        await server.client()
        site.far.needed_scope = "write"
        with pytest.raises(ToolError, match="needs login with more permissions: ostler mcp login far"):
            await call(server)
        site.far.needed_scope = ""
        await site.log_in()
        assert site.authority.sent("/authorize")[-1]["scope"] == "read write"
        assert site.login.missing_scope == ""
        assert await call(server) == "far: hi"

    @pytest.mark.parametrize("status", [403, 404, 429, 503])
    async def test_authorization_server_that_fails_does_not_end_the_login(self, site, status):
        await site.log_in()
        server = site.server()
        await server.client()
        await self.expire(site)
        site.authority.failure = status
        with pytest.raises(ToolError, match=f"HTTP {status}"):
            await call(server)
        site.authority.failure = 0
        assert await call(server) == "far: hi"

    async def test_another_login_replaces_that_of_the_former_issuer(self, site):
        await site.log_in()
        with FakeAuthorizationServer() as other:
            site.authority = other
            site.far.protect(other)
            await site.log_in()
            assert [name.account.split()[0] for name in site.store.names()] == [other.issuer]
            assert await call(site.server()) == "far: hi"


async def test_logout_revokes_and_deletes(site):
    await site.log_in()
    refresh = site.login.refresh_token
    assert await log_out(site.entry(), site.logins, site.locks, {})
    assert site.authority.sent("/revoke")[0]["token"] == refresh
    assert site.login is None
    assert not await log_out(site.entry(), site.logins, site.locks, {})


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('Bearer resource_metadata="https://a/b", scope="x  y x"', Challenge("https://a/b", "x y")),
        (
            'Basic realm="Bearer scope=1", Bearer error=insufficient_scope, scope=z',
            Challenge("", "z", "insufficient_scope"),
        ),
        ("bearer  scope=a", Challenge("", "a")),
        ("Bearer", Challenge()),
        ("", Challenge()),
        ('Bearer scope="unclosed', Challenge()),
        ('Bearer scope="a\\"b"', Challenge("", 'a"b')),
    ],
)
def test_challenge_is_read(header, expected):
    assert read_challenge(header) == expected


@pytest.mark.parametrize("part", ["a", "a ", " ", ",", "a=", '"', "\\", 'a="', "bearer ", ", bearer "])
def test_giant_challenge_is_read_quickly(part):
    started = time.process_time()
    read_challenge("Bearer " + part * 60_000)
    assert time.process_time() - started < 1


def test_pasted_text_must_belong_to_this_login():
    expected = Expected("s", "https://a", False)
    assert read_pasted("http://127.0.0.1:1/callback?code=c&state=s", expected) == {"code": "c", "state": "s"}
    assert read_pasted("code=c&state=s", expected)["code"] == "c"
    assert read_pasted("c", expected) == {"code": "c"}
    for text, wanted in (("?code=c&state=x", expected), ("", expected), ("c", Expected("s", "https://a", True))):
        with pytest.raises(UsageError):
            read_pasted(text, wanted)


@pytest.mark.parametrize("issuer", ["https://A", "https://a/", "https://a:443"])
def test_issuer_is_compared_as_it_is(issuer):
    with pytest.raises(BackendError):
        read_code({"code": "c", "iss": issuer}, Expected("s", "https://a", False))
