"""Opens connections to a server, directly, through a proxy or a Unix socket, with or without TLS."""

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

from ostler.core.errors import BackendError
from ostler.http.proxy import Proxy
from ostler.http.socket_connection import SocketConnection
from ostler.http.url import ServerOrigin

if TYPE_CHECKING:
    import h11

    from ostler.http.tls import TlsFiles

_MAX_PROXY_HEAD = 16_384
TRUST_HINT = "check the host name, or set your company's CA file with SSL_CERT_FILE or the profile's `ca`"


class Dialer:
    """Opens connections to one server. With `unix` they go to that socket, and `origin` only names the server.

    `setting` is what the user calls the setting with the server's address; hints of errors name it.
    `trust_hint` says what to do if its certificate is not trusted.
    """

    def __init__(
        self,
        origin: ServerOrigin,
        *,
        proxy: Proxy | None = None,
        tls_files: "TlsFiles | None" = None,
        timeout: float = 10.0,
        unix: str = "",
        setting: str = "the base URL",
        trust_hint: str = TRUST_HINT,
    ) -> None:
        self.origin = origin
        self.setting = setting
        self._trust_hint = trust_hint
        self._unix = unix
        self._proxy = proxy
        self._tls_files = tls_files
        self._timeout = timeout
        self._ssl_context: ssl.SSLContext | None = None

    def request_target(self, target: str) -> tuple[str, list[tuple[str, str]]]:
        """Return the request target and the extra headers: a plain HTTP proxy needs an absolute URL."""
        if self._proxy is None or self.origin.scheme == "https":
            return target, []
        return f"http://{self.origin.authority}{target}", self._proxy_auth_headers(self._proxy)

    async def connect(self, *, tunnel: bool = False) -> SocketConnection:
        """Open a connection; with `tunnel` a proxy passes plain HTTP on unread. Raises `BackendError`."""
        try:
            async with asyncio.timeout(self._timeout):
                if self._unix:
                    connection = await self._connect_unix()
                elif self._proxy is None:
                    connection = await self._connect_direct(self.origin, tls=self.origin.scheme == "https")
                else:
                    connection = await self._connect_via_proxy(self._proxy, tunnel=tunnel)
        except TimeoutError:
            raise BackendError(
                f"{self.origin.address} did not accept a connection within {self._timeout:g} s",
                code="timeout",
                hint=f"check {self.setting}, the network and the proxy settings",
            ) from None
        self._check_fingerprint(connection)
        return connection

    def early_close_error(self, error: OSError | None) -> BackendError | None:
        """Return why a TLS connection may have been closed before any response, or None without TLS."""
        if self.origin.scheme != "https":
            return None
        if isinstance(error, ssl.SSLError):
            return self._tls_error(error)
        from ostler.http.tls import TlsFiles, early_close_error

        return early_close_error(self.origin, self._tls_files or TlsFiles())

    async def _connect_direct(self, origin: ServerOrigin, *, tls: bool) -> SocketConnection:
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                SocketConnection,
                origin.host,
                origin.port,
                ssl=self._get_ssl_context() if tls else None,
                server_hostname=origin.host if tls else None,
                happy_eyeballs_delay=None if origin.is_loopback else 0.25,  # a cancelled race leaks sockets
            )
            return connection
        except ssl.SSLError as error:
            raise self._tls_error(error) from None
        except OSError as error:
            disconnected = tls and isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError)
            raise (self.early_close_error(error) if disconnected else None) or self._unreachable_error(
                origin, error
            ) from None

    async def _connect_unix(self) -> SocketConnection:
        try:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_unix_connection(SocketConnection, self._unix)
            return connection
        except OSError as error:
            raise BackendError(
                f"cannot connect to {self._unix}: {error.strerror or error}",
                code="unreachable",
                hint="start the server with `ostler serve --unix FILE`, as the same user",
            ) from None

    async def _connect_via_proxy(self, proxy: Proxy, *, tunnel: bool) -> SocketConnection:
        try:
            connection = await self._connect_direct(proxy.origin, tls=False)
        except BackendError as error:
            raise BackendError(
                f"cannot connect to the proxy: {error.fault.message}",
                code="proxy",
                hint="check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or the profile's `proxy`",
            ) from None
        if self.origin.scheme == "http" and not tunnel:
            return connection
        try:
            await self._open_tunnel(connection, proxy)
            return connection
        except BaseException:
            connection.abort()
            raise

    async def _open_tunnel(self, connection: SocketConnection, proxy: Proxy) -> None:
        """Open a tunnel to the server with CONNECT, and for https start TLS in it."""
        import h11  # slow import, only needed for proxies

        peer = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_PROXY_HEAD)
        headers = [("host", self.origin.address), *self._proxy_auth_headers(proxy)]
        connection.write(peer.send(h11.Request(method="CONNECT", target=self.origin.address, headers=headers)) or b"")
        status = await self._read_proxy_status(peer, connection, proxy)
        if not 200 <= status < 300:
            hint = (
                "put the user name and password into HTTPS_PROXY"
                if status == 407
                else "check NO_PROXY and the proxy's rules"
            )
            raise BackendError(
                f"the proxy {proxy.origin.address} refused the connection to {self.origin.address} ({status})",
                code="proxy",
                hint=hint,
            )
        if self.origin.scheme == "http":
            return
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(
                connection.transport, connection, self._get_ssl_context(), server_hostname=self.origin.host
            )
        except ssl.SSLError as error:
            raise self._tls_error(error) from None
        except OSError as error:
            raise self._unreachable_error(self.origin, error) from None
        if secured is None:
            raise BackendError(f"{self.origin.address} aborted the TLS handshake", code="tls")
        connection.transport = secured

    async def _read_proxy_status(self, peer: "h11.Connection", connection: SocketConnection, proxy: Proxy) -> int:
        import h11

        broken = BackendError(
            f"the proxy {proxy.origin.address} sent an invalid response", code="proxy", hint="check HTTPS_PROXY"
        )
        peer.send(h11.EndOfMessage())
        try:
            while True:
                event = peer.next_event()
                if isinstance(event, h11.Response):
                    return int(event.status_code)
                if event is h11.NEED_DATA:
                    peer.receive_data(await connection.read() or b"")
                elif not isinstance(event, h11.InformationalResponse):
                    raise broken
        except (h11.RemoteProtocolError, OSError):
            raise broken from None

    def _check_fingerprint(self, connection: SocketConnection) -> None:
        if self._tls_files is None or not self._tls_files.fingerprint:
            return
        from ostler.http.tls import check_fingerprint

        tls = connection.transport.get_extra_info("ssl_object")
        try:
            check_fingerprint(self.origin, tls, self._tls_files.fingerprint)
        except BackendError:
            connection.abort()
            raise

    def _get_ssl_context(self) -> ssl.SSLContext:
        from ostler.http.tls import TlsFiles, make_ssl_context

        if self._ssl_context is None:
            self._ssl_context = make_ssl_context(self._tls_files or TlsFiles())
        return self._ssl_context

    def _tls_error(self, error: ssl.SSLError) -> BackendError:
        from ostler.http.tls import TlsFiles, tls_error

        return tls_error(self.origin, error, self._tls_files or TlsFiles(), self.setting, self._trust_hint)

    def _unreachable_error(self, origin: ServerOrigin, error: OSError) -> BackendError:
        hint = f"check {self.setting} and the network"
        if isinstance(error, socket.gaierror):
            return BackendError(f"unknown host {origin.host}", code="unreachable", hint=hint)
        if isinstance(error, ConnectionRefusedError):
            return BackendError(
                f"connection refused by {origin.address}",
                code="unreachable",
                hint=f"start the server, or change {self.setting}",
            )
        reason = error.strerror or type(error).__name__
        return BackendError(f"cannot connect to {origin.address} ({reason})", code="unreachable", hint=hint)

    @staticmethod
    def _proxy_auth_headers(proxy: Proxy) -> list[tuple[str, str]]:
        return [("proxy-authorization", proxy.credentials)] if proxy.credentials else []
