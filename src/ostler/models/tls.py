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


def tls_failure(origin: Origin, error: ssl.SSLError) -> BackendError:
    """What a failed handshake means for the person."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BackendError(
            f"the certificate of {origin.where} is not trusted ({error.verify_message})",
            code="tls",
            hint="check the host name, or name your company's CA file with SSL_CERT_FILE or the profile's `ca`",
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"):
        return BackendError(f"{origin.where} does not speak TLS", code="tls", hint="write http:// in the base URL")
    return BackendError(
        f"TLS with {origin.where} failed ({error.reason or 'handshake broken off'})",
        code="tls",
        hint="ask who runs the server whether it wants a client certificate",
    )


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
