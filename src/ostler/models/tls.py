"""How servers are trusted over TLS: the machine's own store, a company's authority, a certificate of ours."""

import ssl
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ostler.models.origin import Origin
from ostler.vocabulary.errors import BackendError

_USUAL_STORES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)

_OWN = "name yours with the profile's `clientCert` (and `clientKey`)"
_OTHER = "check the profile's `clientCert` and `clientKey`, and who the server takes certificates from"
# What a server says of a certificate that it was shown.
_ABOUT_OURS = ("UNKNOWN_CA", "CERTIFICATE", "ACCESS_DENIED", "DECRYPT_ERROR", "HANDSHAKE_FAILURE")


class Trust(msgspec.Struct, frozen=True):
    """Files beyond the machine's store: a further authority, and what we show of ourselves."""

    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""


def tls_context(trust: Trust) -> ssl.SSLContext:
    """A context that checks certificates and names; OpenSSL itself honours SSL_CERT_FILE and SSL_CERT_DIR."""
    context = ssl.create_default_context()
    _add_usual_store(context)
    if trust.ca_file:
        _load(trust.ca_file, lambda: context.load_verify_locations(trust.ca_file), "CA file")
    if trust.client_cert:
        key = trust.client_key or None
        _load(
            trust.client_cert,
            lambda: context.load_cert_chain(trust.client_cert, key, password=""),
            "client certificate",
        )
    return context


def tls_failure(origin: Origin, error: ssl.SSLError, trust: Trust) -> BackendError:
    """What a failed handshake means for the person. TLS 1.3 lets a server refuse us only when all seemed well."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BackendError(
            f"the certificate of {origin.where} is not trusted ({error.verify_message})",
            code="tls",
            hint="check the host name, or name your company's CA file with SSL_CERT_FILE or the profile's `ca`",
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"):
        return BackendError(f"{origin.where} does not speak TLS", code="tls", hint="write http:// in the base URL")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return shut_out(origin, trust)
    reason = error.reason or "handshake broken off"
    if "CERTIFICATE_REQUIRED" in reason:
        return BackendError(f"{origin.where} asks for a client certificate", code="tls", hint=_OWN)
    if trust.client_cert and any(word in reason for word in _ABOUT_OURS):
        told = f"{origin.where} refused the client certificate {trust.client_cert} ({reason})"
        return BackendError(told, code="tls", hint=_OTHER)
    hint = _OTHER if trust.client_cert else f"if it asks for a client certificate, {_OWN}"
    return BackendError(f"TLS with {origin.where} failed ({reason})", code="tls", hint=hint)


def shut_out(origin: Origin, trust: Trust) -> BackendError:
    """A connection that ended before a word of an answer: its end may overtake the reason that was told for it."""
    if trust.client_cert:
        why, hint = f"as servers do that refuse a client certificate (ours is {trust.client_cert})", _OTHER
    else:
        why, hint = "as servers do that ask for a client certificate", f"if it asks for one, {_OWN}"
    return BackendError(f"{origin.where} closed the connection before it answered, {why}", code="closed", hint=hint)


def _add_usual_store(context: ssl.SSLContext) -> None:
    """A Python built elsewhere may look for the store where this machine has none."""
    paths = ssl.get_default_verify_paths()
    if context.cert_store_stats()["x509_ca"] or paths.cafile or paths.capath:
        return
    for path in _USUAL_STORES:
        with suppress(OSError):
            context.load_verify_locations(path)
            return


def _load(path: str, load: Callable[[], None], what: str) -> None:
    try:
        load()
    except ssl.SSLError:
        raise BackendError(f"the {what} {path} is not in PEM form", code="tls", hint="give a PEM file") from None
    except OSError as error:
        raise BackendError(
            f"the {what} {path} cannot be read ({error.strerror})", code="tls", hint="check the path"
        ) from None
