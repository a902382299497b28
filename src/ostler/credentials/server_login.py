"""Logs in at an Ostler server with a token or a pairing code, and finds the stored login of a server."""

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ostler.core.errors import BackendError, OstlerError, UsageError
from ostler.credentials.server_logins import ServerLogin, ServerLogins
from ostler.http.client import HttpClient, HttpDocument
from ostler.http.dialer import Dialer
from ostler.http.proxy import proxy_for
from ostler.http.tls import TlsFiles
from ostler.http.url import ServerOrigin, parse_server, server_url
from ostler.wire.pairing import (
    PAIR_PATH,
    TOKEN_PATH,
    PairingLine,
    PairingReply,
    PairingRequest,
    is_pairing_code,
    parse_pairing_line,
)

CHECK_PATH = "/api/agent/capabilities"
TRUST_HINT = (
    "log in with the whole pairing line, which has its fingerprint, or set SSL_CERT_FILE to the file of its issuer"
)
TIMEOUT_SECONDS = 10.0
MAX_REPLY = 64 * 1024
UNIX = "unix:"
TOKEN_VARIABLE = "OSTLER_SERVER_TOKEN"  # used instead of a stored token
_TOKEN = re.compile(r"ostler_[0-9a-f]{16}_[0-9a-f]{64}")


class KnownServer(msgspec.Struct, frozen=True):
    """A server with the login to use there. With `unix` it is reached through that socket, without a token."""

    origin: ServerOrigin
    login: ServerLogin
    unix: str = ""

    @property
    def url(self) -> str:
        """The text that finds this server again."""
        return f"{UNIX}{self.unix}" if self.unix else server_url(self.origin)

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of every request and WebSocket handshake."""
        return [("authorization", f"Bearer {self.login.token}")] if self.login.token else []

    def dialer(self, env: Mapping[str, str]) -> Dialer:
        """Return what connects to the server and checks its certificate."""
        if self.unix:
            return Dialer(self.origin, unix=self.unix, timeout=TIMEOUT_SECONDS)
        files = TlsFiles(fingerprint=self.login.fingerprint) if self.login.fingerprint else None
        return Dialer(
            self.origin,
            proxy=proxy_for(self.origin, env),
            tls_files=files,
            timeout=TIMEOUT_SECONDS,
            setting="its URL",
            trust_hint=TRUST_HINT,
        )


def find_server(text: str, logins: ServerLogins, env: Mapping[str, str]) -> KnownServer:
    """Return the server of a URL, Unix socket (`unix:FILE`) or name with its login. Raises `UsageError`.

    A name is the host of a stored login; without any text it is the only stored login.
    """
    if text.startswith((UNIX, "/")):
        return KnownServer(
            ServerOrigin("http", "localhost", 80), ServerLogin(""), os.path.abspath(text.removeprefix(UNIX))
        )
    origin = parse_server(text if "://" in text else _find_url(text, logins.urls()))
    login, token = logins.get(server_url(origin)), env.get(TOKEN_VARIABLE, "")
    if login is None and not token:
        raise UsageError(f"no login for {server_url(origin)}", hint=f"run `ostler login {server_url(origin)}`")
    login = login or ServerLogin("")
    login = msgspec.structs.replace(login, token=token or login.token)
    _check_plain(origin, allow_plain=login.allow_plain)
    return KnownServer(origin, login)


def _find_url(name: str, urls: Sequence[str]) -> str:
    origins = {url: parse_server(url) for url in urls}
    found = [url for url, origin in origins.items() if name in ("", origin.host, origin.address)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"there are logins for {', '.join(sorted(found))}", hint="name one of them, as remote:URL")
    if name:
        return name
    raise UsageError("no server is known", hint="run `ostler connect` with the line that `ostler serve` printed")


async def open_server(text: str, logins: ServerLogins, env: Mapping[str, str]) -> KnownServer:
    """Return the server of `find_server`, or of a pairing line, which is used up and becomes a stored login."""
    if "#" in text and parse_pairing_line(text).code:
        return (await log_in(text, logins, env, lambda url: ""))[0]
    return find_server(text, logins, env)


async def log_in(
    text: str,
    logins: ServerLogins,
    env: Mapping[str, str],
    read_secret: Callable[[str], str],
    *,
    allow_plain: bool = False,
) -> tuple[KnownServer, str]:
    """Store a login for a URL or pairing line, after the server has accepted it. Return it with the user, if known.

    `read_secret` asks for a token or a pairing code if the text has none. Raises `OstlerError`.
    """
    line = parse_pairing_line(text)
    origin = parse_server(line.url)
    _check_plain(origin, allow_plain=allow_plain)
    if line.fingerprint and origin.scheme != "https":
        raise UsageError("only a server with https:// has a certificate", hint="copy the whole line of the server")
    secret = line.code or read_secret(server_url(origin)).strip()
    server, user = KnownServer(origin, ServerLogin("", line.fingerprint, allow_plain)), ""
    if is_pairing_code(secret):
        reply = await _pair(server, PairingLine(line.url, secret), env)
        secret, user = reply.token, reply.user
    if not _TOKEN.fullmatch(secret):
        raise UsageError("this is not a token or pairing code of an Ostler server", hint="it starts with ostler_")
    server = KnownServer(origin, msgspec.structs.replace(server.login, token=secret))
    if not user:
        await _check(server, env)
    logins.set(server.url, server.login)
    return server, user


async def log_out(text: str, logins: ServerLogins, env: Mapping[str, str]) -> str:
    """Revoke the token of a server and delete its login. Return what the user should know. Raises `OstlerError`."""
    url = server_url(parse_server(parse_pairing_line(text).url))
    try:
        server = find_server(url, logins, {})
        answer = await _request(server, env, "DELETE", TOKEN_PATH)
        result = "its token was revoked" if answer.status in (204, 401) else _describe(server, answer)
    except OstlerError as error:
        result = str(error)
    if not logins.delete(url):
        raise UsageError(f"no login for {url}", hint="`ostler login` lists the servers")
    return result


async def _pair(server: KnownServer, line: PairingLine, env: Mapping[str, str]) -> PairingReply:
    label = "".join(letter for letter in socket.gethostname() if letter.isprintable())[:80]
    body = msgspec.json.encode(PairingRequest(line.code, label))
    answer = await _request(server, env, "POST", PAIR_PATH, body)
    if answer.status == 401:
        raise UsageError(
            f"{server.url} did not accept the pairing code, which works once and for a short time",
            hint="make a new one with `ostler serve token pair USER` on the server",
        )
    if answer.status != 200:
        raise BackendError(_describe(server, answer), code=f"http_{answer.status}")
    try:
        return msgspec.json.decode(answer.body, type=PairingReply)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BackendError(f"{server.url} is not an Ostler server", code="malformed") from None


async def _check(server: KnownServer, env: Mapping[str, str]) -> None:
    answer = await _request(server, env, "GET", CHECK_PATH)
    if answer.status == 401:
        raise UsageError(f"{server.url} did not accept the token", hint="it may be revoked or expired")
    if answer.status not in (200, 403):  # 403: a token without the scope `read`
        raise BackendError(_describe(server, answer), code=f"http_{answer.status}")


async def _request(
    server: KnownServer, env: Mapping[str, str], method: str, path: str, body: bytes = b""
) -> HttpDocument:
    client = HttpClient(server.dialer(env))
    headers = [*server.headers(), *([("content-type", "application/json")] if body else [])]
    try:
        return await client.fetch(method, path, headers, body, timeout=TIMEOUT_SECONDS, limit=MAX_REPLY)
    finally:
        await client.aclose()


def _describe(server: KnownServer, answer: HttpDocument) -> str:
    try:
        fields = msgspec.json.decode(answer.body, type=dict[str, str | int])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f"{server.url} is not an Ostler server (status {answer.status})"
    text = "".join(letter for letter in str(fields.get("error", "")) if letter.isprintable())[:200]
    return f"{server.url} answered {answer.status}: {text}"


def _check_plain(origin: ServerOrigin, *, allow_plain: bool) -> None:
    if origin.scheme == "http" and not origin.is_loopback and not allow_plain:
        raise UsageError(
            f"{server_url(origin)} would get the token unencrypted",
            hint="use https://, or log in with --allow-plain if the network is trusted",
        )
