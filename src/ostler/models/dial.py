"""Connections to one server: directly or through a proxy, with or without TLS, within a time."""

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

from ostler.models.origin import Origin
from ostler.models.proxy import Proxy
from ostler.models.wire import Wire
from ostler.vocabulary.errors import BackendError

if TYPE_CHECKING:
    import h11

    from ostler.models.tls import Trust

_MAX_PROXY_HEAD = 16_384


class Dialer:
    """Knows the way to one server."""

    def __init__(
        self, origin: Origin, *, proxy: Proxy | None = None, trust: "Trust | None" = None, timeout: float = 10.0
    ) -> None:
        self.origin = origin
        self._proxy = proxy
        self._trust = trust
        self._timeout = timeout
        self._context: ssl.SSLContext | None = None

    def address(self, target: str) -> tuple[str, list[tuple[str, str]]]:
        """How a request names its target on this way, and the headers a proxy wants with it."""
        if self._proxy is None or self.origin.scheme == "https":
            return target, []
        return f"http://{self.origin.authority}{target}", self._credentials(self._proxy)

    async def dial(self) -> Wire:
        """A new connection, ready for requests."""
        try:
            async with asyncio.timeout(self._timeout):
                if self._proxy is None:
                    return await self._direct(self.origin, tls=self.origin.scheme == "https")
                return await self._through(self._proxy)
        except TimeoutError:
            raise BackendError(
                f"{self.origin.where} could not be reached within {self._timeout:g} s",
                code="timeout",
                hint="check the base URL, the network and whether a proxy is needed",
            ) from None

    def unanswered(self, error: OSError | None) -> BackendError | None:
        """Why a new connection may have ended before a word of an answer; nothing where TLS has no part in it."""
        if self.origin.scheme != "https":
            return None
        if isinstance(error, ssl.SSLError):
            return self._tls_failure(error)
        from ostler.models.tls import Trust, shut_out

        return shut_out(self.origin, self._trust or Trust())

    async def _direct(self, origin: Origin, *, tls: bool) -> Wire:
        try:
            _, wire = await asyncio.get_running_loop().create_connection(
                Wire,
                origin.host,
                origin.port,
                ssl=self._tls() if tls else None,
                server_hostname=origin.host if tls else None,
                happy_eyeballs_delay=None if origin.loopback else 0.25,  # a race leaves sockets behind when cancelled
            )
            return wire
        except ssl.SSLError as error:
            raise self._tls_failure(error) from None
        except OSError as error:
            hung_up = tls and isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError)
            raise (self.unanswered(error) if hung_up else None) or _unreachable(origin, error) from None

    async def _through(self, proxy: Proxy) -> Wire:
        try:
            wire = await self._direct(proxy.origin, tls=False)
        except BackendError as error:
            raise BackendError(
                f"the proxy cannot be used: {error.fault.message}",
                code="proxy",
                hint="check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or the profile's `proxy`",
            ) from None
        if self.origin.scheme == "http":
            return wire
        try:
            await self._tunnel(wire, proxy)
            return wire
        except BaseException:
            wire.abort()
            raise

    async def _tunnel(self, wire: Wire, proxy: Proxy) -> None:
        """Ask the proxy for a way to the server, then speak TLS through it."""
        import h11  # only proxies are spoken to by it here

        peer = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_PROXY_HEAD)
        headers = [("host", self.origin.where), *self._credentials(proxy)]
        wire.write(peer.send(h11.Request(method="CONNECT", target=self.origin.where, headers=headers)) or b"")
        status = await self._proxy_status(peer, wire, proxy)
        if not 200 <= status < 300:
            hint = (
                "put its name and password into HTTPS_PROXY"
                if status == 407
                else "check NO_PROXY and the proxy's rules"
            )
            raise BackendError(
                f"the proxy {proxy.origin.where} refused the way to {self.origin.where} ({status})",
                code="proxy",
                hint=hint,
            )
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(wire.transport, wire, self._tls(), server_hostname=self.origin.host)
        except ssl.SSLError as error:
            raise self._tls_failure(error) from None
        except OSError as error:
            raise _unreachable(self.origin, error) from None
        if secured is None:
            raise BackendError(f"{self.origin.where} broke off the TLS handshake", code="tls")
        wire.transport = secured

    async def _proxy_status(self, peer: "h11.Connection", wire: Wire, proxy: Proxy) -> int:
        import h11

        broken = BackendError(
            f"the proxy {proxy.origin.where} does not answer as one", code="proxy", hint="check HTTPS_PROXY"
        )
        peer.send(h11.EndOfMessage())
        try:
            while True:
                event = peer.next_event()
                if isinstance(event, h11.Response):
                    return int(event.status_code)
                if event is h11.NEED_DATA:
                    peer.receive_data(await wire.read() or b"")
                elif not isinstance(event, h11.InformationalResponse):
                    raise broken
        except (h11.RemoteProtocolError, OSError):
            raise broken from None

    def _tls(self) -> ssl.SSLContext:
        from ostler.models.tls import Trust, tls_context

        if self._context is None:
            self._context = tls_context(self._trust or Trust())
        return self._context

    def _tls_failure(self, error: ssl.SSLError) -> BackendError:
        from ostler.models.tls import Trust, tls_failure

        return tls_failure(self.origin, error, self._trust or Trust())

    @staticmethod
    def _credentials(proxy: Proxy) -> list[tuple[str, str]]:
        return [("proxy-authorization", proxy.credentials)] if proxy.credentials else []


def _unreachable(origin: Origin, error: OSError) -> BackendError:
    if isinstance(error, socket.gaierror):
        return BackendError(
            f"the name {origin.host} is not known", code="unreachable", hint="check the base URL and the network"
        )
    if isinstance(error, ConnectionRefusedError):
        return BackendError(
            f"nothing answers at {origin.where}",
            code="unreachable",
            hint="start the server there, or change the base URL",
        )
    return BackendError(
        f"{origin.where} cannot be reached ({error.strerror or type(error).__name__})",
        code="unreachable",
        hint="check the base URL and the network",
    )
