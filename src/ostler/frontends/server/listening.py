"""Checks where a server may listen, and under which names it is reached. Raises `UsageError` before a port is open."""

import ipaddress
import ssl
from collections.abc import Iterable

import msgspec

from ostler.core.accounts import Accounts
from ostler.core.errors import UsageError

DEFAULT_PORTS = (80, 443)


class ListenOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where to listen. `allow_plain` permits other machines to connect without TLS, for example behind a proxy."""

    host: str = "127.0.0.1"
    port: int = 0
    certificate: str = ""
    key: str = ""
    allow_plain: bool = False
    names: tuple[str, ...] = ()  # further values of `Host`, with their port unless it is the usual one


def check_listening(options: ListenOptions) -> ssl.SSLContext | None:
    """Return the TLS settings, or None for plain HTTP. Raises `UsageError` if listening would be unsafe."""
    if bool(options.certificate) != bool(options.key):
        raise UsageError("TLS needs both a certificate and a key", hint="give --tls-cert and --tls-key")
    if options.certificate:
        return _load_tls(options)
    if not is_loopback(options.host) and not options.allow_plain:
        raise UsageError(
            f"other machines can reach {options.host or 'every address'}, and tokens would be sent unencrypted",
            hint="give --tls-cert and --tls-key, or --allow-plain if a proxy adds TLS",
        )
    return None


def check_accounts(accounts: Accounts, *, has_pairing: bool = False) -> None:
    """Raise `UsageError` if nobody could use the server."""
    if not has_pairing and not accounts.has_valid_token():
        raise UsageError("the server has no valid token", hint="make one with `ostler serve token issue USER`")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address. Other names than localhost count as reachable."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str, port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the values of the `Host` header under which a server is reached; `port` is the real one."""
    addresses = {host} if _is_specific(host) else set()
    if is_loopback(host) or not _is_specific(host):
        addresses |= {"localhost", "127.0.0.1", "::1"}
    written = {f"[{address}]" if ":" in address else address for address in addresses}
    found = {f"{name}:{port}" for name in written} | set(names)
    if port in DEFAULT_PORTS:
        found |= written
    return frozenset(name.lower() for name in found)


def _is_specific(host: str) -> bool:
    try:
        return bool(host) and not ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return True


def _load_tls(options: ListenOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.certificate, options.key, password=lambda: "")  # never ask in the terminal
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{options.certificate} and {options.key} cannot be used for TLS: {str(error)[:200]}",
            hint="both must be readable PEM files that belong together, without a password",
        ) from None
    return context
