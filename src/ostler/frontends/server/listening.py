"""Checks where a server may listen, and under which names it is reached. Raises `UsageError` before a port is open."""

import hashlib
import ipaddress
import re
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path

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


def split_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; an IPv6 host is in brackets. Raises `UsageError`."""
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]\s]*)):([0-9]{1,5})", text)
    if match is None or int(match[3]) > 65535:
        raise UsageError(f"{text[:80]!r} is not HOST:PORT", hint="for example 127.0.0.1:8034 or [::1]:8034")
    return match[1] or match[2], int(match[3])


def listen_tcp(options: ListenOptions) -> socket.socket:
    """Return a listening socket. Raises `UsageError` if the address cannot be used."""
    host = options.host or "0.0.0.0"
    try:
        family, _, _, _, address = socket.getaddrinfo(host, options.port, type=socket.SOCK_STREAM)[0]
        if is_loopback(options.host) and not ipaddress.ip_address(str(address[0])).is_loopback:
            raise OSError("its address is not on this machine")
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"cannot listen on {host[:80]}: {error.strerror or error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {host[:80]}:{options.port}: {error.strerror or error}", hint="choose another --bind"
        ) from None
    listener.listen(1024)
    listener.setblocking(False)
    return listener


def certificate_fingerprint(file: str) -> str:
    """Return the SHA-256 of the first certificate of a PEM file as hexadecimal digits. Raises `UsageError`."""
    try:
        match = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", Path(file).read_text(), re.DOTALL)
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(match[0] if match else "")).hexdigest()
    except (OSError, ValueError):
        raise UsageError(f"{file} is not a readable PEM file with a certificate") from None


def check_accounts(accounts: Accounts, *, has_pairing: bool = False) -> None:
    """Raise `UsageError` if nobody could use the server."""
    if not has_pairing and not accounts.has_valid_token():
        raise UsageError("the server has no valid token", hint="make one with `ostler serve token issue USER`")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address. Other names than localhost are treated as reachable."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str, port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the values of the `Host` header under which a server is reached.

    `port` is the real one, and `names` are further values.
    """
    addresses = {host} if _is_specific(host) else set()
    if is_loopback(host) or not _is_specific(host):
        addresses |= {"localhost", "127.0.0.1", "::1"}
    written = {f"[{address}]" if ":" in address else address for address in addresses}
    if not is_loopback(host):
        written.add(socket.gethostname())
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
