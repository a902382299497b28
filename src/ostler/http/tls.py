"""TLS configuration: system store, extra CA, client certificate; error messages for failed handshakes."""

import ssl
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ostler.core.errors import BackendError
from ostler.http.url import ServerOrigin

_COMMON_CA_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)

_CLIENT_CERT_HINT = "set the profile's `clientCert` (and `clientKey`)"
_CHECK_CERT_HINT = "check the profile's `clientCert` and `clientKey`, and which issuers the server accepts"
# OpenSSL reasons of servers that reject a client certificate.
_CLIENT_CERT_REASONS = ("UNKNOWN_CA", "CERTIFICATE", "ACCESS_DENIED", "DECRYPT_ERROR", "HANDSHAKE_FAILURE")


class TlsFiles(msgspec.Struct, frozen=True):
    """An extra CA file, and the client certificate with its key.

    `fingerprint` is the SHA-256 of the only server certificate to accept, with any issuer and any name.
    """

    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    fingerprint: str = ""


def make_ssl_context(files: TlsFiles) -> ssl.SSLContext:
    """Create a context that verifies certificates and host names. OpenSSL reads SSL_CERT_FILE and SSL_CERT_DIR."""
    context = ssl.create_default_context()
    if files.fingerprint:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # `check_fingerprint` is called instead
    else:
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


def check_fingerprint(origin: ServerOrigin, tls: ssl.SSLObject | None, fingerprint: str) -> None:
    """Raise `BackendError` unless the server has shown the certificate with this SHA-256."""
    import hashlib
    import hmac

    certificate = tls.getpeercert(binary_form=True) if tls else None
    found = hashlib.sha256(certificate).hexdigest() if certificate else ""
    if not hmac.compare_digest(found, fingerprint.lower()):
        raise BackendError(
            f"the certificate of {origin.address} is not the one of the pairing",
            code="tls",
            hint="if the server has a new certificate, pair again; otherwise somebody intercepts the connection",
        )


def tls_error(
    origin: ServerOrigin, error: ssl.SSLError, files: TlsFiles, setting: str, trust_hint: str
) -> BackendError:
    """Return the error message for a failed handshake. With TLS 1.3 a rejection may arrive after the handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BackendError(
            f"the certificate of {origin.address} is not trusted ({error.verify_message})",
            code="tls",
            hint=trust_hint,
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"):
        return BackendError(f"{origin.address} does not speak TLS", code="tls", hint=f"use http:// in {setting}")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return early_close_error(origin, files)
    reason = error.reason or "handshake aborted"
    if "CERTIFICATE_REQUIRED" in reason:
        return BackendError(f"{origin.address} requires a client certificate", code="tls", hint=_CLIENT_CERT_HINT)
    if files.client_cert and any(word in reason for word in _CLIENT_CERT_REASONS):
        message = f"{origin.address} rejected the client certificate {files.client_cert} ({reason})"
        return BackendError(message, code="tls", hint=_CHECK_CERT_HINT)
    hint = _CHECK_CERT_HINT if files.client_cert else f"if it requires a client certificate, {_CLIENT_CERT_HINT}"
    return BackendError(f"TLS with {origin.address} failed ({reason})", code="tls", hint=hint)


def early_close_error(origin: ServerOrigin, files: TlsFiles) -> BackendError:
    """Return the error for a connection closed before any response; the server's TLS alert may have been lost."""
    if files.client_cert:
        reason, hint = f"it may have rejected the client certificate {files.client_cert}", _CHECK_CERT_HINT
    else:
        reason, hint = "it may require a client certificate", f"if so, {_CLIENT_CERT_HINT}"
    message = f"{origin.address} closed the connection before it answered; {reason}"
    return BackendError(message, code="closed", hint=hint)


def _load_system_store(context: ssl.SSLContext) -> None:
    """Load the system's CA file if Python's own default paths do not exist on this machine."""
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
        raise BackendError(f"the {what} {path} is not a PEM file", code="tls", hint="use a PEM file") from None
    except OSError as error:
        raise BackendError(
            f"cannot read the {what} {path} ({error.strerror})", code="tls", hint="check the path"
        ) from None
