"""Connections to one server: directly or through a proxy, with or without TLS, within a time."""

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

from ostler.core.errors import BackendError
from ostler.models.base_url import ServerOrigin
from ostler.models.proxy import Proxy
from ostler.models.socket_connection import SocketConnection

if TYPE_CHECKING:
    import h11

    from ostler.models.tls import TlsFiles

_MAX_PROXY_HEAD = 16_384


class Dialer:
    """Knows the way to one server."""

    def __init__(
        self,
        origin: ServerOrigin,
        *,
        proxy: Proxy | None = None,
        tls_files: "TlsFiles | None" = None,
        timeout: float = 10.0,
    ) -> None:
        self.origin = origin
        self._proxy = proxy
        self._tls_files = tls_files
        self._timeout = timeout
        self._ssl_context: ssl.SSLContext | None = None

    def request_target(self, target: str) -> tuple[str, list[tuple[str, str]]]:
        """How a request names its target on this way, and the headers a proxy wants with it."""
        if self._proxy is None or self.origin.scheme == "https":
            return target, []
        return f"http://{self.origin.authority}{target}", self._proxy_auth_headers(self._proxy)

    async def connect(self) -> SocketConnection:
        """A new connection, ready for requests."""
        try:
            async with asyncio.timeout(self._timeout):
                if self._proxy is None:
                    return await self._connect_direct(self.origin, tls=self.origin.scheme == "https")
                return await self._connect_via_proxy(self._proxy)
        except TimeoutError:
            raise BackendError(
                f"{self.origin.address} could not be reached within {self._timeout:g} s",
                code="timeout",
                hint="check the base URL, the network and whether a proxy is needed",
            ) from None

    def early_close_error(self, error: OSError | None) -> BackendError | None:
        """Why a new connection may have ended before a word of an answer; nothing where TLS has no part in it."""
        if self.origin.scheme != "https":
            return None
        if isinstance(error, ssl.SSLError):
            return self._tls_error(error)
        from ostler.models.tls import TlsFiles, early_close_error

        return early_close_error(self.origin, self._tls_files or TlsFiles())

    async def _connect_direct(self, origin: ServerOrigin, *, tls: bool) -> SocketConnection:
        try:
            _, wire = await asyncio.get_running_loop().create_connection(
                SocketConnection,
                origin.host,
                origin.port,
                ssl=self._get_ssl_context() if tls else None,
                server_hostname=origin.host if tls else None,
                happy_eyeballs_delay=None
                if origin.is_loopback
                else 0.25,  # a race leaves sockets behind when cancelled
            )
            return wire
        except ssl.SSLError as error:
            raise self._tls_error(error) from None
        except OSError as error:
            hung_up = tls and isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError)
            raise (self.early_close_error(error) if hung_up else None) or _unreachable_error(origin, error) from None

    async def _connect_via_proxy(self, proxy: Proxy) -> SocketConnection:
        try:
            wire = await self._connect_direct(proxy.origin, tls=False)
        except BackendError as error:
            raise BackendError(
                f"the proxy cannot be used: {error.fault.message}",
                code="proxy",
                hint="check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or the profile's `proxy`",
            ) from None
        if self.origin.scheme == "http":
            return wire
        try:
            await self._open_tunnel(wire, proxy)
            return wire
        except BaseException:
            wire.abort()
            raise

    async def _open_tunnel(self, connection: SocketConnection, proxy: Proxy) -> None:
        """Ask the proxy for a way to the server, then speak TLS through it."""
        import h11  # only proxies are spoken to by it here

        peer = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_PROXY_HEAD)
        headers = [("host", self.origin.address), *self._proxy_auth_headers(proxy)]
        connection.write(peer.send(h11.Request(method="CONNECT", target=self.origin.address, headers=headers)) or b"")
        status = await self._read_proxy_status(peer, connection, proxy)
        if not 200 <= status < 300:
            hint = (
                "put its name and password into HTTPS_PROXY"
                if status == 407
                else "check NO_PROXY and the proxy's rules"
            )
            raise BackendError(
                f"the proxy {proxy.origin.address} refused the way to {self.origin.address} ({status})",
                code="proxy",
                hint=hint,
            )
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(
                connection.transport, connection, self._get_ssl_context(), server_hostname=self.origin.host
            )
        except ssl.SSLError as error:
            raise self._tls_error(error) from None
        except OSError as error:
            raise _unreachable_error(self.origin, error) from None
        if secured is None:
            raise BackendError(f"{self.origin.address} broke off the TLS handshake", code="tls")
        connection.transport = secured

    async def _read_proxy_status(self, peer: "h11.Connection", connection: SocketConnection, proxy: Proxy) -> int:
        import h11

        broken = BackendError(
            f"the proxy {proxy.origin.address} does not answer as one", code="proxy", hint="check HTTPS_PROXY"
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

    def _get_ssl_context(self) -> ssl.SSLContext:
        from ostler.models.tls import TlsFiles, make_ssl_context

        if self._ssl_context is None:
            self._ssl_context = make_ssl_context(self._tls_files or TlsFiles())
        return self._ssl_context

    def _tls_error(self, error: ssl.SSLError) -> BackendError:
        from ostler.models.tls import TlsFiles, tls_error

        return tls_error(self.origin, error, self._tls_files or TlsFiles())

    @staticmethod
    def _proxy_auth_headers(proxy: Proxy) -> list[tuple[str, str]]:
        return [("proxy-authorization", proxy.credentials)] if proxy.credentials else []


def _unreachable_error(origin: ServerOrigin, error: OSError) -> BackendError:
    if isinstance(error, socket.gaierror):
        return BackendError(
            f"the name {origin.host} is not known", code="unreachable", hint="check the base URL and the network"
        )
    if isinstance(error, ConnectionRefusedError):
        return BackendError(
            f"nothing answers at {origin.address}",
            code="unreachable",
            hint="start the server there, or change the base URL",
        )
    return BackendError(
        f"{origin.address} cannot be reached ({error.strerror or type(error).__name__})",
        code="unreachable",
        hint="check the base URL and the network",
    )
