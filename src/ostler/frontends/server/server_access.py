"""Who may reach a server: its sockets, the guard in front of its application, and the line for pairing."""

import getpass
import os
import re
import socket
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostler.core.accounts import DAY, Accounts
from ostler.core.errors import UsageError
from ostler.frontends.server.audit_log import AuditEntry, AuditLog
from ostler.frontends.server.authentication import HEALTH_PATH, AccessRules, TokenGuard
from ostler.frontends.server.listening import (
    ListenOptions,
    allowed_hosts,
    certificate_fingerprint,
    check_accounts,
    check_listening,
    listen_tcp,
)
from ostler.frontends.server.pairing_exchange import PairingExchange, TokenRevocation
from ostler.frontends.server.unix_socket import close_unix, listen_unix
from ostler.http.url import ServerOrigin, parse_server, server_url
from ostler.wire.pairing import PAIR_PATH, PairingLine

if TYPE_CHECKING:
    from starlette.types import ASGIApp

EVERY_ADDRESS = ("", "0.0.0.0", "::")
PAIRING_SECONDS = 600.0
TOKEN_SECONDS = 90 * DAY


class AccessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens: a port unless `tcp` is None, and a Unix socket if `unix` is set.

    `urls` are further addresses of the server, for example of a proxy; the first one is in the pairing line.
    """

    tcp: ListenOptions | None = ListenOptions()
    unix: str = ""
    urls: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    has_pairing: bool = True


class ServerAccess:
    """The open sockets of a server. Raises `UsageError` if the options are unsafe or an address cannot be used."""

    def __init__(self, options: AccessOptions, accounts: Accounts, audit: AuditLog) -> None:
        self.user = local_user()
        self._options = options
        self._accounts = accounts
        self._audit = audit
        check_origins(options.origins)
        self._origins = [parse_server(url) for url in options.urls]
        self._tcp = self._unix = None
        if options.tcp:
            if check_listening(options.tcp) and options.unix:
                raise UsageError("a server cannot have TLS and a Unix socket", hint="start it without one of them")
            check_accounts(accounts, has_pairing=options.has_pairing)
            self._tcp = listen_tcp(options.tcp)
        if options.unix:
            try:
                self._unix = listen_unix(Path(options.unix))
            except BaseException:
                self.close()
                raise

    @property
    def sockets(self) -> list[socket.socket]:
        return [listener for listener in (self._tcp, self._unix) if listener]

    @property
    def tls_files(self) -> tuple[str, str]:
        """Certificate and key, or empty texts."""
        return (self._options.tcp.certificate, self._options.tcp.key) if self._options.tcp else ("", "")

    @property
    def url(self) -> str:
        """The address for clients: the first of `urls`, or what the server listens on."""
        tcp = self._options.tcp
        if tcp is None or self._tcp is None:
            return ""
        host = socket.gethostname() if tcp.host in EVERY_ADDRESS else tcp.host
        own = ServerOrigin("https" if tcp.certificate else "http", host, self._tcp.getsockname()[1])
        return server_url(self._origins[0] if self._origins else own)

    @property
    def port(self) -> int:
        return int(self._tcp.getsockname()[1]) if self._tcp else 0

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the certificate, or ""."""
        certificate, _ = self.tls_files
        return certificate_fingerprint(certificate) if certificate else ""

    def guard(self, app: "ASGIApp") -> "ASGIApp":
        """Return the application behind all checks."""
        app = TokenRevocation(app, self._accounts, self._audit)
        open_paths = {HEALTH_PATH}
        if self._options.tcp:
            app = PairingExchange(app, self._accounts, self._audit)
            open_paths.add(PAIR_PATH)
        rules = AccessRules(
            self._hosts(),
            frozenset(self._options.origins),
            frozenset(open_paths),
            {os.geteuid(): self.user} if self._unix else {},
        )
        return TokenGuard(app, self._accounts, rules, self._audit)

    def announcement(self) -> Collection[str]:
        """Return the lines that tell where the server is, with a new pairing line for the user who runs it."""
        lines = [f"listening at {place}" for place in (self.url, self._options.unix) if place]
        tcp = self._options.tcp
        if tcp and self._options.has_pairing:
            code = self._accounts.open_pairing(self.user, PAIRING_SECONDS, TOKEN_SECONDS)
            self._audit.write(AuditEntry(event="pairing.opened", user=self.user, client="command line"))
            lines += [
                f"connect one client as {self.user} within {PAIRING_SECONDS / 60:g} minutes:",
                f"  ostler connect '{PairingLine(self.url, code, self.fingerprint)}'",
            ]
        return lines

    def close(self) -> None:
        """Close the sockets and remove the file of the Unix socket."""
        if self._tcp:
            self._tcp.close()
        if self._unix:
            close_unix(self._unix, Path(self._options.unix))

    def _hosts(self) -> frozenset[str]:
        tcp = self._options.tcp
        if tcp is None or self._tcp is None:
            return frozenset()
        names = [name for origin in self._origins for name in (origin.authority, origin.address)]
        return allowed_hosts(tcp.host, self._tcp.getsockname()[1], names)


def check_origins(origins: Collection[str]) -> None:
    """Raise `UsageError` unless each text is an exact web origin. Every page can send `null`, so it is none."""
    for text in origins:
        if not re.fullmatch(r"https?://[^/\s*@?#]+", text):
            raise UsageError(
                f"{text[:80]!r} in server.origins is not a web origin",
                hint="write it as https://host or https://host:port",
            )


def local_user() -> str:
    """Return the name of the user who runs this process, as accounts allow it."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = ""
    return re.sub(r"^[^a-z0-9]+", "", re.sub(r"[^a-z0-9._@-]", "-", name.lower()))[:64] or f"uid-{os.geteuid()}"
