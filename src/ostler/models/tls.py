"""How servers are trusted over TLS: the machine's own store, a company's authority, a certificate of ours."""

import ssl
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ostler.core.errors import BackendError
from ostler.models.base_url import ServerOrigin

_COMMON_CA_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)

_CLIENT_CERT_HINT = "name yours with the profile's `clientCert` (and `clientKey`)"
_CHECK_CERT_HINT = "check the profile's `clientCert` and `clientKey`, and who the server takes certificates from"
# What a server says of a certificate that it was shown.
_CLIENT_CERT_REASONS = ("UNKNOWN_CA", "CERTIFICATE", "ACCESS_DENIED", "DECRYPT_ERROR", "HANDSHAKE_FAILURE")


class TlsFiles(msgspec.Struct, frozen=True):
    """Files beyond the machine's store: a further authority, and what we show of ourselves."""

    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""


def make_ssl_context(files: TlsFiles) -> ssl.SSLContext:
    """A context that checks certificates and names; OpenSSL itself honours SSL_CERT_FILE and SSL_CERT_DIR."""
    context = ssl.create_default_context()
    _load_system_store(context)
    if files.ca_file:
        _load_pem(files.ca_file, lambda: context.load_verify_locations(files.ca_file), "CA file")
    if files.client_cert:
        key = files.client_key or None
        _load_pem(
            files.client_cert,
            lambda: context.load_cert_chain(files.client_cert, key, password=""),
            "client certificate",
        )
    return context


def tls_error(origin: ServerOrigin, error: ssl.SSLError, files: TlsFiles) -> BackendError:
    """What a failed handshake means for the person. TLS 1.3 lets a server refuse us only when all seemed well."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BackendError(
            f"the certificate of {origin.address} is not trusted ({error.verify_message})",
            code="tls",
            hint="check the host name, or name your company's CA file with SSL_CERT_FILE or the profile's `ca`",
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"):
        return BackendError(f"{origin.address} does not speak TLS", code="tls", hint="write http:// in the base URL")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return early_close_error(origin, files)
    reason = error.reason or "handshake broken off"
    if "CERTIFICATE_REQUIRED" in reason:
        return BackendError(f"{origin.address} asks for a client certificate", code="tls", hint=_CLIENT_CERT_HINT)
    if files.client_cert and any(word in reason for word in _CLIENT_CERT_REASONS):
        told = f"{origin.address} refused the client certificate {files.client_cert} ({reason})"
        return BackendError(told, code="tls", hint=_CHECK_CERT_HINT)
    hint = _CHECK_CERT_HINT if files.client_cert else f"if it asks for a client certificate, {_CLIENT_CERT_HINT}"
    return BackendError(f"TLS with {origin.address} failed ({reason})", code="tls", hint=hint)


def early_close_error(origin: ServerOrigin, files: TlsFiles) -> BackendError:
    """A connection that ended before a word of an answer: its end may overtake the reason that was told for it."""
    if files.client_cert:
        why, hint = f"as servers do that refuse a client certificate (ours is {files.client_cert})", _CHECK_CERT_HINT
    else:
        why, hint = "as servers do that ask for a client certificate", f"if it asks for one, {_CLIENT_CERT_HINT}"
    return BackendError(f"{origin.address} closed the connection before it answered, {why}", code="closed", hint=hint)


def _load_system_store(context: ssl.SSLContext) -> None:
    """A Python built elsewhere may look for the store where this machine has none."""
    paths = ssl.get_default_verify_paths()
    if context.cert_store_stats()["x509_ca"] or paths.cafile or paths.capath:
        return
    for path in _COMMON_CA_FILES:
        with suppress(OSError):
            context.load_verify_locations(path)
            return


def _load_pem(path: str, load: Callable[[], None], what: str) -> None:
    try:
        load()
    except ssl.SSLError:
        raise BackendError(f"the {what} {path} is not in PEM form", code="tls", hint="give a PEM file") from None
    except OSError as error:
        raise BackendError(
            f"the {what} {path} cannot be read ({error.strerror})", code="tls", hint="check the path"
        ) from None
